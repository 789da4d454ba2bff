//! What a session does, as a tree of steps. Blocks of steps are in one list, so that a session's place in the
//! tree is a few numbers.

use load::Nanos;

use crate::response::capture::{Capture, Match};
use crate::response::expectation::Expectation;
use crate::template::expression::Expression;
use crate::template::scope::Reference;
use crate::template::text::{JsonTemplate, Text};

/// Names a block of [`Steps`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockId(pub(crate) u32);

/// All blocks of all scenarios.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    blocks: Vec<Vec<Step>>,
}

#[derive(Debug)]
pub(crate) enum Step {
    Request(Box<RequestStep>),
    Think(Think),
    Log(Text),
    Loop(Loop),
    Parallel(Parallel),
}

#[derive(Debug)]
pub(crate) struct RequestStep {
    /// The number of its name in the report.
    pub(crate) name: u32,
    /// The number of its endpoint, if it counts as one.
    pub(crate) endpoint: Option<u32>,
    /// Its name in messages.
    pub(crate) label: String,
    pub(crate) method: http::Method,
    /// A path on the target, or a whole URL.
    pub(crate) url: Text,
    pub(crate) query: Vec<(Text, Text)>,
    /// Names are in lower case. Headers that are sent by default are included.
    pub(crate) headers: Vec<(String, Text)>,
    pub(crate) cookies: Vec<(String, Text)>,
    pub(crate) user: Option<(Text, Text)>,
    pub(crate) body: Body,
    pub(crate) redirects: Redirects,
    pub(crate) condition: Option<Condition>,
    /// The probability that the request is sent, in percent.
    pub(crate) probability: Option<u32>,
    pub(crate) captures: Vec<Capture>,
    pub(crate) matches: Vec<Match>,
    pub(crate) expectations: Vec<Expectation>,
}

#[derive(Debug)]
pub(crate) enum Body {
    None,
    Text(Text),
    Json(JsonTemplate),
    /// `application/x-www-form-urlencoded`
    Form(Vec<(Text, Text)>),
    /// `multipart/form-data`
    Multipart {
        boundary: String,
        fields: Vec<Field>,
    },
}

/// A field of a `multipart/form-data` body.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) content_type: Option<String>,
    pub(crate) content: FieldContent,
}

#[derive(Debug)]
pub(crate) enum FieldContent {
    Text(Text),
    /// A file, which is read with the script.
    File {
        name: String,
        bytes: Vec<u8>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Redirects {
    Follow,
    Leave,
}

/// What must hold for a request to be sent.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) expression: Expression,
    /// The variables that its names mean.
    pub(crate) variables: Vec<Reference>,
}

/// A pause.
#[derive(Debug)]
pub(crate) struct Think {
    pub(crate) length: ThinkTime,
    pub(crate) jitter: Option<Jitter>,
}

#[derive(Debug)]
pub(crate) enum ThinkTime {
    Fixed(Nanos),
    /// A text that gives a number of seconds, or a time with its unit.
    Text(Text),
}

/// By how much a pause may be longer or shorter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Jitter {
    Time(Nanos),
    /// A share of the pause.
    Share(f64),
}

/// Steps that are repeated.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) body: BlockId,
    pub(crate) rounds: Rounds,
    /// The variable that counts, and the one that holds the element.
    pub(crate) count: u32,
    pub(crate) element: u32,
}

#[derive(Debug)]
pub(crate) enum Rounds {
    /// The counter goes from the first number to below the second. Without a second it never ends.
    Range(i64, Option<i64>),
    /// A text that gives a count or a range.
    Text(Text),
    /// Once for each of these.
    List(Vec<serde_json::Value>),
    /// Once for each element of a variable that is a list.
    Over(Reference),
}

/// Blocks that run at once.
#[derive(Debug)]
pub(crate) struct Parallel {
    pub(crate) branches: Vec<BlockId>,
    pub(crate) limit: usize,
}

impl Steps {
    pub(crate) fn add(&mut self, steps: Vec<Step>) -> BlockId {
        self.blocks.push(steps);
        BlockId(self.blocks.len() as u32 - 1)
    }

    pub(crate) fn requests(&self) -> usize {
        let steps = self.blocks.iter().flatten();
        steps.filter(|step| matches!(step, Step::Request(_))).count()
    }

    pub(crate) fn step(&self, block: BlockId, at: u32) -> Option<&Step> {
        self.blocks[block.0 as usize].get(at as usize)
    }
}
