//! JUnit XML: a case a threshold, and one for the verdict, so that a CI shows what failed. XML 1.0 has
//! no place for control characters, not even as references.

use std::io;

use load::visible;
use quick_xml::Writer;
use quick_xml::events::BytesText;

use super::{overload, summary, text};
use crate::document::load::Document;
use crate::document::verdict::Verdict;

/// A test case, and what is wrong, if it is.
struct Case<'a> {
    name: &'a str,
    wrong: Option<(Kind, String)>,
}

/// A failure is the target's, an error the measurement's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Failure,
    Error,
}

/// One suite. It fails where the exit code is not 0.
pub fn junit(document: &Document) -> anyhow::Result<String> {
    let cases = Case::all(document);
    let count = |kind| cases.iter().filter(|case| case.is(kind)).count().to_string();
    let (tests, failures, errors) =
        (cases.len().to_string(), count(Kind::Failure), count(Kind::Error));
    let time = format!("{:.3}", document.duration_s);
    let name = format!("tenfold load {}", visible(&document.target));
    // Without parts of a second and zone, as the stricter schemas want it.
    let began = document.started_at.split(['.', 'Z']).next().unwrap_or_default();
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    let suite = [
        ("name", name.as_str()),
        ("tests", &tests),
        ("failures", &failures),
        ("errors", &errors),
        ("time", &time),
        ("timestamp", began),
    ];
    xml.create_element("testsuites").write_inner_content(|xml| {
        xml.create_element("testsuite").with_attributes(suite).write_inner_content(|xml| {
            xml.create_element("properties").write_inner_content(|xml| {
                let run = summary(document);
                let property = [("name", "summary"), ("value", &visible(&run))];
                xml.create_element("property").with_attributes(property).write_empty()?;
                if let Some(overload) = overload(document) {
                    let property = [("name", "overload"), ("value", overload.as_str())];
                    xml.create_element("property").with_attributes(property).write_empty()?;
                }
                Ok(())
            })?;
            cases.iter().try_for_each(|case| case.write(xml, document))?;
            xml.create_element("system-out")
                .write_text_content(BytesText::new(&visible(&text(document))))?;
            Ok(())
        })?;
        Ok(())
    })?;
    let body = String::from_utf8(xml.into_inner())?;
    Ok(format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{body}\n"))
}

impl Case<'_> {
    fn all(document: &Document) -> Vec<Case<'_>> {
        let invalid = document.verdict == Verdict::Invalid;
        let verdict = Case {
            name: "the measurement can be trusted",
            wrong: invalid.then(|| (Kind::Error, document.verdict_reasons.join("; "))),
        };
        let thresholds = document.thresholds.iter().map(|check| Case {
            name: &check.name,
            wrong: (!check.met).then(|| (Kind::Failure, check.measured.clone())),
        });
        std::iter::once(verdict).chain(thresholds).collect()
    }

    fn is(&self, kind: Kind) -> bool {
        self.wrong.as_ref().is_some_and(|(wrong, _)| *wrong == kind)
    }

    fn write(&self, xml: &mut Writer<Vec<u8>>, document: &Document) -> io::Result<()> {
        let attributes =
            [("classname", &*visible(&document.target)), ("name", &visible(self.name))];
        let case = xml.create_element("testcase").with_attributes(attributes);
        let Some((kind, message)) = &self.wrong else {
            return case.write_empty().map(drop);
        };
        let element = if *kind == Kind::Failure { "failure" } else { "error" };
        case.write_inner_content(|xml| {
            let message = ("message", &*visible(message));
            xml.create_element(element).with_attribute(message).write_empty().map(drop)
        })
        .map(drop)
    }
}
