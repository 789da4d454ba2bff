//! Reports as files: they hold the run, and need nothing else.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Home, alone, json, said, shared};

/// A document that the program wrote when it measured.
fn document(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../web/tests/documents/{name}.json"))
}

/// What another reader finds in a report: the elements' names, the data as JSON, and every address.
fn read_by_python(home: &Home, report: &str) -> Value {
    let reader = "
import html.parser, json, sys
class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(); self.tags = []; self.links = []; self.data = ''; self.inside = False
    def handle_starttag(self, tag, pairs):
        self.tags.append(tag)
        self.links += [v for k, v in pairs if k in ('src', 'href', 'action', 'data', 'srcset', 'poster')]
        self.inside = tag == 'script' and ('id', 'tenfold') in pairs
    def handle_data(self, text):
        if self.inside: self.data += text
    def handle_endtag(self, tag): self.inside = False
reader = Reader(); reader.feed(open(sys.argv[1]).read())
print(json.dumps({'tags': reader.tags, 'links': reader.links, 'data': json.loads(reader.data)}))";
    let output = Command::new("python3")
        .args(["-c", reader, report])
        .current_dir(home.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    json(&output)
}

#[test]
fn a_report_holds_the_run_and_needs_nothing_else() {
    let _machine = shared();
    let home = Home::new();
    for (name, most) in [("plan", 250_000), ("cost", 250_000), ("load", 300_000)] {
        let kept = document(name);
        let written = home.run(&format!("report {} -o {name}.html", kept.display()));
        assert_eq!(written.status.code(), Some(0), "{}", said(&written));
        let html = fs::read_to_string(home.path().join(format!("{name}.html"))).unwrap();
        assert!(html.len() <= most, "{name}: {} bytes", html.len());
        let expected: Value = serde_json::from_str(&fs::read_to_string(&kept).unwrap()).unwrap();
        let read = read_by_python(&home, &format!("{name}.html"));
        assert_eq!(read["data"], expected, "{name}");
        assert_eq!(read["links"], serde_json::json!([]), "{name}");
        let shown = home.run(&format!("show {name}.html"));
        assert_eq!(said(&shown), said(&home.run(&format!("show {}", kept.display()))));
        // Without JavaScript it says what the text says.
        let text = said(&shown);
        let answer = text.lines().next().unwrap();
        assert!(name != "plan" || html.contains(answer), "{text}");
    }
}

#[test]
fn names_that_look_like_markup_stay_text() {
    let _machine = shared();
    let home = Home::new();
    let hostile = "</script><script>alert(1)</script><!--<script><img src=x onerror=alert(1)>";
    let text = fs::read_to_string(document("plan")).unwrap();
    let mut plan: Value = serde_json::from_str(&text).unwrap();
    plan["command"] = serde_json::json!([hostile]);
    plan["findings"][0]["remedy"] = hostile.into();
    plan["notes"] = serde_json::json!([hostile]);
    fs::write(home.path().join("plan.json"), plan.to_string()).unwrap();
    assert_eq!(home.run("report plan.json -o plan.html").status.code(), Some(0));
    let read = read_by_python(&home, "plan.html");
    assert_eq!(read["data"], plan);
    assert!(!read["tags"].as_array().unwrap().contains(&"img".into()), "{}", read["tags"]);
}

#[test]
fn a_load_is_reported_and_compared_by_its_file() {
    let home = Home::new();
    let up = home.serve(&format!(
        "up --listen 127.0.0.1:0 -n 2 -- {} demo-app",
        env!("CARGO_BIN_EXE_tenfold")
    ));
    let _machine = alone();
    for name in ["a", "b"] {
        let load = format!("load http://{}/?token=geheim --users 2 --duration 3s", up.address);
        let mut command = home.tenfold(&format!("{load} --quiet --report {name}.html"));
        command.args(["-H", "Authorization: Bearer geheim"]);
        let output = command.output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 4)), "{}", said(&output));
    }
    let html = fs::read_to_string(home.path().join("a.html")).unwrap();
    assert!(!html.contains("geheim") && html.contains("Authorization: ***"));
    let shown = said(&home.run("show a.html"));
    assert!(shown.contains("2 users") && shown.contains("response time"), "{shown}");
    let compared = home.run("compare a.html b.html --report both.html");
    assert!(said(&compared).starts_with("A: run a.html, 2 users"), "{}", said(&compared));
    assert_eq!(read_by_python(&home, "both.html")["data"]["schema"], "tenfold/compare/1");
    assert_eq!(said(&home.run("show both.html")), said(&home.run("compare a.html b.html")));
    // The history has the same run, with the command that repeats it.
    let run = json(&home.run("show last --json -"));
    assert_eq!(run["invocation"][1], "load");
    assert!(run["machine"]["cores"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_chart_is_a_picture_that_other_programs_read() {
    let _machine = shared();
    let home = Home::new();
    let plan = document("plan");
    for arguments in ["show {} --chart curve.svg", "report {} --chart curve.png"] {
        let written = home.run(&arguments.replace("{}", &plan.display().to_string()));
        assert_eq!(written.status.code(), Some(0), "{}", said(&written));
    }
    // Of a report, the chart alone was asked for.
    assert!(!home.path().join("report.html").exists());
    let reader = "
import json, struct, sys, xml.etree.ElementTree as tree, zlib
root = tree.parse('curve.svg').getroot()
png = open('curve.png', 'rb').read()
assert png[:8] == b'\\x89PNG\\r\\n\\x1a\\n'
width, height = struct.unpack('>II', png[16:24])
at, data = 8, b''
while at < len(png):
    size, kind = struct.unpack('>I4s', png[at:at + 8])
    body = png[at + 8:at + 8 + size]
    assert zlib.crc32(kind + body) == struct.unpack('>I', png[at + 8 + size:at + 12 + size])[0]
    data += body if kind == b'IDAT' else b''
    at += 12 + size
rows = zlib.decompress(data)
assert len(rows) == height * (1 + 4 * width) and len(set(rows)) > 100
print(json.dumps({'root': root.tag, 'title': root[0].text, 'png': [width, height],
    'svg': [float(root.get('width')), float(root.get('height'))]}))";
    let output =
        Command::new("python3").args(["-c", reader]).current_dir(home.path()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let read = json(&output);
    assert_eq!(read["root"], "{http://www.w3.org/2000/svg}svg");
    assert!(read["title"].as_str().unwrap().starts_with("Run 4 instances"), "{read}");
    assert_eq!(read["png"][0].as_f64(), read["svg"][0].as_f64().map(|width| width * 2.0));
}

#[test]
fn a_chart_that_cannot_be_drawn_leaves_no_file() {
    let _machine = shared();
    let home = Home::new();
    let path = |name: &str| document(name).display().to_string();
    for (arguments, words) in [
        (
            format!("show {} --chart curve.pdf", path("plan")),
            "name a file that ends in .svg or .png",
        ),
        (format!("report {} --chart -", path("plan")), "name a file that ends in .svg or .png"),
        (format!("show {} --chart a.svg", path("cost")), "only a plan has a curve to draw"),
        (format!("report {} --chart a.svg", path("load")), "only a plan has a curve to draw"),
        (format!("show {} --chart a.png", path("capacity")), "the plan has no curve to draw"),
        (format!("show {} --chart /dev/null/a.svg", path("plan")), "name a file in a directory"),
        ("plan --chart a.svg -- true".to_owned(), "--chart draws the instances that a workload"),
        ("plan --users 1 --chart b/a.svg -- true".to_owned(), "name a file in a directory"),
    ] {
        let output = home.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", said(&output));
        assert!(said(&output).contains(words), "{arguments}: {}", said(&output));
    }
    assert!(!home.path().join("a.svg").exists() && !home.path().join("a.png").exists());
}

#[test]
fn a_report_of_something_else_is_refused_with_a_remedy() {
    let _machine = shared();
    let home = Home::new();
    fs::write(home.path().join("page.html"), "<html><p>something else</html>").unwrap();
    fs::write(home.path().join("other.json"), "{\"schema\": \"another/1\"}").unwrap();
    for (arguments, words) in [
        ("report 7", "there is no run 7: `tenfold runs` lists them"),
        ("report nowhere.html", "neither a run nor a file"),
        ("report page.html", "holds no run: name a file of --json or --report"),
        ("show other.json", "holds no run: name a file of --json or --report"),
        ("compare page.html page.html", "holds no run"),
        ("report page.html -o /dev/null/x.html", "name a file in a directory"),
        ("plan --json a --report a --users 1 -- true", "give each a file of its own"),
    ] {
        let output = home.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", said(&output));
        assert!(said(&output).contains(words), "{arguments}: {}", said(&output));
    }
    let plan = document("plan");
    let compared = home.run(&format!("compare {0} {0}", plan.display()));
    assert!(said(&compared).contains("only load runs can be compared"), "{}", said(&compared));
}
