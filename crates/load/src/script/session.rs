//! One session of a script, without I/O: told of answers and of time, it says what comes next.

use rand::RngExt;
use rand::rngs::SmallRng;
use serde_json::Value;

use super::Script;
use super::answer::{Answered, Interest, Kept};
use super::capture::Surroundings;
use super::check::Check;
use super::cookies::{Jar, Place};
use super::expression::Operand;
use super::outgoing::{self, Destination, Form};
use super::quantity;
use super::rounds::Round;
use super::steps::{
    BlockId, Condition, Jitter, Parallel, Redirects, RequestStep, Step, Think, ThinkTime,
};
use super::template::Scope;
use crate::clock::time::{MILLISECOND, Nanos};
use crate::http::request::PreparedRequest;
use crate::metrics::session_tally::OpenSessionTally;

/// Steps done at a stretch without sending or pausing. A loop that does neither must not take
/// the thread.
const STRETCH: u32 = 1000;
/// How long what does neither rests then.
pub(super) const IDLE_PAUSE: Nanos = MILLISECOND;
/// Redirects that one request follows.
const MAX_HOPS: u8 = 10;

#[derive(Debug)]
pub(crate) struct Session {
    pub(super) scope: Scope,
    jar: Jar,
    pub(super) strands: Vec<Strand>,
    /// Strands that can go on.
    ready: Vec<u32>,
    in_flight: u32,
    /// Steps since it last sent or rested.
    stretch: u32,
    failed: Option<String>,
}

/// What a session wants.
#[derive(Debug, PartialEq)]
pub(crate) enum Act {
    /// The request of this strand is to be sent: see [`Session::write_request`].
    Send(u32),
    /// This strand goes on after so long: see [`Session::resume`].
    Pause(u32, Nanos),
    /// Says something to whoever watches.
    Log(String),
    /// Nothing before an answer or the end of a pause.
    Wait,
    /// It has completed, or failed with an error of this name.
    Ended(Result<(), String>),
}

/// What a session works with besides itself.
pub(crate) struct World<'a> {
    pub(crate) script: &'a Script,
    pub(crate) random: &'a mut SmallRng,
    pub(crate) tally: &'a mut OpenSessionTally,
    /// A buffer to work in.
    pub(crate) scratch: &'a mut Vec<u8>,
}

/// A line of steps. A session has one, and more while steps run in parallel.
#[derive(Debug, Default)]
pub(super) struct Strand {
    pub(super) frames: Vec<Frame>,
    /// The strand that waits for this one.
    parent: Option<u32>,
    /// The request that is under way: its block and place.
    request: Option<(BlockId, u32)>,
    /// Where an answer has sent it.
    redirect: Option<Destination>,
    hops: u8,
    fork: Option<Fork>,
}

/// Branches that run in parallel.
#[derive(Debug)]
struct Fork {
    step: (BlockId, u32),
    next: usize,
    running: u32,
}

/// A place in a block.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) block: BlockId,
    pub(super) at: u32,
    pub(super) round: Option<Round>,
}

impl Session {
    /// A session that knows `scope` and does the steps of `block`.
    pub(crate) fn new(scope: Scope, block: BlockId) -> Session {
        let mut session = Session {
            scope,
            jar: Jar::default(),
            strands: Vec::new(),
            ready: Vec::new(),
            in_flight: 0,
            stretch: 0,
            failed: None,
        };
        session.spawn(block, None);
        session
    }

    /// Begins again as another session, in the same memory.
    pub(crate) fn restart(&mut self, scope: &Scope, block: BlockId) {
        self.scope.reset(scope);
        self.jar.clear();
        self.strands.truncate(1);
        self.ready.clear();
        self.in_flight = 0;
        self.stretch = 0;
        self.failed = None;
        self.spawn(block, None);
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(crate) fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    /// What is to be done now. To be asked again until it waits or has ended.
    pub(crate) fn poll(&mut self, world: &mut World<'_>) -> Act {
        while self.failed.is_none() {
            let Some(strand) = self.ready.pop() else {
                let done = self.strands[0].frames.is_empty();
                return if done { Act::Ended(Ok(())) } else { Act::Wait };
            };
            if let Some(act) = self.advance(strand, world) {
                return act;
            }
        }
        // What is still in flight is waited for, so that every request has its end.
        match self.in_flight {
            0 => Act::Ended(Err(self.failed.take().unwrap_or_default())),
            _ => Act::Wait,
        }
    }

    /// A pause is over.
    pub(crate) fn resume(&mut self, strand: u32) {
        self.stretch = 0;
        self.ready.push(strand);
    }

    /// Writes the request that the strand wants to send. Says whether the answer's body is to be
    /// kept.
    ///
    /// # Errors
    /// The name of the error, if no request can be made of what the script says now.
    pub(crate) fn write_request(
        &mut self,
        strand: u32,
        world: &mut World<'_>,
        request: &mut PreparedRequest,
    ) -> Result<Interest, &'static str> {
        let step = self.request_step(strand, world.script);
        let redirect = self.strands[strand as usize].redirect.as_ref();
        let mut near = Surroundings { scope: &self.scope, random: &mut *world.random };
        let (script, scratch) = (world.script, &mut *world.scratch);
        outgoing::write(step, redirect, script, &mut near, &mut self.jar, scratch, request)?;
        Ok(step.interest())
    }

    /// The request of the strand is under way.
    pub(crate) fn sent(&mut self) {
        self.stretch = 0;
        self.in_flight += 1;
    }

    pub(crate) fn request_step<'s>(&self, strand: u32, script: &'s Script) -> &'s RequestStep {
        let (block, at) = self.strands[strand as usize].request.expect("a request is under way");
        match script.steps.step(block, at) {
            Some(Step::Request(step)) => step,
            _ => unreachable!("the place of a request holds one"),
        }
    }

    /// The strand's request, which went to `path`, is answered.
    pub(crate) fn answered(
        &mut self,
        strand: u32,
        status: u16,
        path: &str,
        kept: &Kept,
        world: &mut World<'_>,
    ) {
        self.in_flight -= 1;
        let place = Place { path, ..world.script.origin.place() };
        for line in kept.headers("set-cookie") {
            self.jar.store(line, place);
        }
        if self.failed.is_some() || self.follows(strand, status, path, kept, world) {
            return;
        }
        let step = self.request_step(strand, world.script);
        let answer = Answered::new(status, kept);
        let (captured, verdict) = self.look(&answer, step, world);
        for (variable, value) in captured {
            self.scope.set(variable, value);
        }
        let checked = self.check(&answer, step, world);
        match verdict.and(checked) {
            Ok(()) => self.ready.push(strand),
            Err(error) => self.failed = Some(error),
        }
    }

    /// The strand's request has failed, if it was ever sent.
    pub(crate) fn broke(&mut self, error: &str) {
        self.in_flight -= 1;
        self.fail(error);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// The session cannot go on.
    pub(crate) fn fail(&mut self, error: &str) {
        self.failed.get_or_insert_with(|| error.to_owned());
    }

    // Steps.

    fn advance(&mut self, strand: u32, world: &mut World<'_>) -> Option<Act> {
        if self.strands[strand as usize].redirect.is_some() {
            return Some(Act::Send(strand));
        }
        while self.stretch < STRETCH {
            self.stretch += 1;
            let Some(frame) = self.strands[strand as usize].frames.last_mut() else {
                self.join(strand, world.script);
                return None;
            };
            let place = (frame.block, frame.at);
            let Some(step) = world.script.steps.step(place.0, place.1) else {
                self.finish_block(strand, world.script);
                continue;
            };
            frame.at += 1;
            match step {
                Step::Request(step) => {
                    if self.wants(step, world.random) {
                        let strand_state = &mut self.strands[strand as usize];
                        strand_state.request = Some(place);
                        strand_state.hops = 0;
                        return Some(Act::Send(strand));
                    }
                }
                Step::Think(think) => match self.think(strand, think, world.random) {
                    // As no step at all: a loop of these would never let go of the thread.
                    Some(Act::Pause(_, 0)) => {}
                    act => return act,
                },
                Step::Log(text) => {
                    self.ready.push(strand);
                    return Some(Act::Log(text.to_string(&self.scope, world.random)));
                }
                Step::Loop(spec) => self.enter_loop(strand, spec, place, world.random),
                Step::Parallel(spec) => {
                    self.fork(strand, spec, place);
                    return None;
                }
            }
        }
        Some(Act::Pause(strand, IDLE_PAUSE))
    }

    fn spawn(&mut self, block: BlockId, parent: Option<u32>) {
        let frame = Frame { block, at: 0, round: None };
        let free = match parent {
            None => (!self.strands.is_empty()).then_some(0),
            Some(_) => (1..self.strands.len())
                .find(|i| self.strands[*i].parent.is_none() && self.strands[*i].frames.is_empty()),
        };
        let index = free.unwrap_or_else(|| {
            self.strands.push(Strand::default());
            self.strands.len() - 1
        });
        let strand = &mut self.strands[index];
        strand.frames.clear();
        strand.frames.push(frame);
        (strand.parent, strand.request, strand.redirect) = (parent, None, None);
        strand.fork = None;
        self.ready.push(index as u32);
    }

    /// The strand has come to its end; whoever waits for it may go on.
    fn join(&mut self, strand: u32, script: &Script) {
        let Some(parent) = self.strands[strand as usize].parent.take() else {
            return;
        };
        let Some(fork) = &mut self.strands[parent as usize].fork else {
            return;
        };
        fork.running -= 1;
        let Some(Step::Parallel(spec)) = script.steps.step(fork.step.0, fork.step.1) else {
            return;
        };
        match spec.branches.get(fork.next) {
            Some(branch) => {
                fork.next += 1;
                fork.running += 1;
                self.spawn(*branch, Some(parent));
            }
            None if fork.running == 0 => {
                self.strands[parent as usize].fork = None;
                self.ready.push(parent);
            }
            None => {}
        }
    }

    fn fork(&mut self, strand: u32, spec: &Parallel, step: (BlockId, u32)) {
        let first = &spec.branches[..spec.limit.min(spec.branches.len())];
        if first.is_empty() {
            self.ready.push(strand);
            return;
        }
        let fork = Fork { step, next: first.len(), running: first.len() as u32 };
        self.strands[strand as usize].fork = Some(fork);
        // The last one spawned goes first.
        for branch in first.iter().rev() {
            self.spawn(*branch, Some(strand));
        }
    }

    fn wants(&self, step: &RequestStep, random: &mut SmallRng) -> bool {
        let likely = step.probability.is_none_or(|percent| random.random_range(0..100) < percent);
        likely && step.condition.as_ref().is_none_or(|condition| self.holds(condition))
    }

    fn holds(&self, condition: &Condition) -> bool {
        let value = |name: usize| self.scope.get(&condition.variables[name]);
        condition.expression.holds(&|name| match value(name).as_deref() {
            Some(Value::String(text)) => Operand::Text(text.clone()),
            Some(Value::Number(number)) => Operand::Number(number.as_f64().unwrap_or(f64::NAN)),
            Some(Value::Bool(truth)) => Operand::Number(f64::from(u8::from(*truth))),
            Some(Value::Null) | None => Operand::Number(f64::NAN),
            Some(Value::Array(_) | Value::Object(_)) => Operand::Text("[object]".into()),
        })
    }

    fn think(&mut self, strand: u32, think: &Think, random: &mut SmallRng) -> Option<Act> {
        let length = match &think.length {
            ThinkTime::Fixed(length) => Some(*length),
            ThinkTime::Text(text) => quantity::seconds(&text.to_string(&self.scope, random)),
        };
        let Some(length) = length else {
            self.fail("Invalid think time");
            return None;
        };
        let spread = match think.jitter {
            None => return Some(Act::Pause(strand, length)),
            Some(Jitter::Time(spread)) => spread as f64,
            Some(Jitter::Share(share)) => length as f64 * share,
        };
        let jittered = length as f64 + spread * random.random_range(-1.0..=1.0);
        Some(Act::Pause(strand, jittered.max(0.0) as Nanos))
    }

    // Answers.

    /// Whether the answer sends the request elsewhere, and the session follows.
    fn follows(
        &mut self,
        strand: u32,
        status: u16,
        path: &str,
        kept: &Kept,
        world: &World<'_>,
    ) -> bool {
        let step = self.request_step(strand, world.script);
        let state = &mut self.strands[strand as usize];
        let form = state.redirect.take().map_or(Form::FinalRecord, |destination| destination.form);
        let followed = matches!(status, 300..=303 | 307 | 308);
        let location = kept.header("location");
        let (true, Redirects::Follow, Some(location)) = (followed, step.redirects, location) else {
            return false;
        };
        state.hops += 1;
        if state.hops > MAX_HOPS {
            self.fail("ERR_TOO_MANY_REDIRECTS");
            return true;
        }
        match Destination::of(location, status, path, form, world.script) {
            Ok(destination) => {
                state.redirect = Some(destination);
                self.ready.push(strand);
            }
            Err(error) => self.fail(error),
        }
        true
    }

    /// The values to be set, and whether the session may go on. One capture that fails keeps the
    /// others from being set.
    #[allow(clippy::type_complexity)]
    fn look(
        &self,
        answer: &Answered<'_>,
        step: &RequestStep,
        world: &mut World<'_>,
    ) -> (Vec<(u32, Value)>, Result<(), String>) {
        let mut near = Surroundings { scope: &self.scope, random: &mut *world.random };
        let captured: Option<Vec<(u32, Value)>> = step
            .captures
            .iter()
            .map(|capture| Some((capture.variable, capture.take(answer, &mut near)?)))
            .collect();
        let matched = step.matches.iter().all(|one| one.holds(answer, &mut near));
        match captured.filter(|_| matched) {
            Some(captured) => (captured, Ok(())),
            None => (Vec::new(), Err("Failed capture or match".to_owned())),
        }
    }

    fn check(
        &self,
        answer: &Answered<'_>,
        step: &RequestStep,
        world: &mut World<'_>,
    ) -> Result<(), String> {
        let mut near = Surroundings { scope: &self.scope, random: &mut *world.random };
        let mut all = true;
        for check in &step.checks {
            let holds = check.holds(answer, &mut near);
            world.tally.checked(check.name(), holds);
            all &= holds;
        }
        match all || !world.script.settings.failed_checks_end_sessions {
            true => Ok(()),
            false => Err(format!("Failed expectations for request {}", step.label)),
        }
    }
}

impl RequestStep {
    fn interest(&self) -> Interest {
        let body = self.captures.iter().any(|one| one.source.looks_at_body())
            || self.matches.iter().any(|one| one.source.looks_at_body())
            || self.checks.iter().any(Check::looks_at_body);
        if body { Interest::Body } else { Interest::Head }
    }
}

#[cfg(test)]
mod tests;
