//! One session of a script, without I/O. It gets answers and the time, and says what comes next.

use load::{MILLISECOND, Nanos, OpenSessionTally, PreparedRequest};
use rand::RngExt;
use rand::rngs::SmallRng;
use serde_json::Value;

use super::branch::{Branch, Fork, Frame};
use super::request_writer;
use crate::http::cookies::{CookieJar, RequestPlace};
use crate::http::redirect::{Redirect, Resend};
use crate::response::expectation::Expectation;
use crate::response::recorded::{RecordedResponse, Recording, Response};
use crate::scenario::script::Script;
use crate::scenario::steps::{
    BlockId, Condition, Jitter, Parallel, Redirects, RequestStep, Step, Think, ThinkTime,
};
use crate::template::expression::Operand;
use crate::template::quantity;
use crate::template::scope::Scope;
use crate::template::text::TemplateContext;

/// The most steps in a row without sending or pausing. A loop that does neither must not take the thread.
const MAX_STEPS_AT_ONCE: u32 = 1000;
/// The pause after that many steps.
pub(super) const IDLE_PAUSE: Nanos = MILLISECOND;
/// Redirects that one request follows.
const MAX_HOPS: u8 = 10;

#[derive(Debug)]
pub(crate) struct Session {
    pub(super) scope: Scope,
    jar: CookieJar,
    pub(super) branches: Vec<Branch>,
    /// Branches that can go on.
    ready: Vec<u32>,
    in_flight: u32,
    /// Steps since it last sent or paused.
    steps_at_once: u32,
    failed: Option<String>,
}

/// What a session wants.
#[derive(Debug, PartialEq)]
pub(crate) enum Act {
    /// To send the request of this branch: see [`Session::write_request`].
    Send(u32),
    /// To pause this branch for this time: see [`Session::resume`].
    Pause(u32, Nanos),
    /// To write a line to the log.
    Log(String),
    /// To wait for an answer or for the end of a pause.
    Wait,
    /// It has completed, or failed with an error of this name.
    Ended(Result<(), String>),
}

/// What the sessions of a thread share.
pub(crate) struct SharedState<'a> {
    pub(crate) script: &'a Script,
    pub(crate) random: &'a mut SmallRng,
    pub(crate) tally: &'a mut OpenSessionTally,
    /// A working buffer.
    pub(crate) scratch: &'a mut Vec<u8>,
}

impl Session {
    /// A session with the variables of `scope`, at the beginning of `block`.
    pub(crate) fn new(scope: Scope, block: BlockId) -> Session {
        let mut session = Session {
            scope,
            jar: CookieJar::default(),
            branches: Vec::new(),
            ready: Vec::new(),
            in_flight: 0,
            steps_at_once: 0,
            failed: None,
        };
        session.spawn(block, None);
        session
    }

    /// Begins again as another session, in the same memory.
    pub(crate) fn restart(&mut self, scope: &Scope, block: BlockId) {
        self.scope.reset(scope);
        self.jar.clear();
        self.branches.truncate(1);
        self.ready.clear();
        self.in_flight = 0;
        self.steps_at_once = 0;
        self.failed = None;
        self.spawn(block, None);
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(crate) fn scope_mut(&mut self) -> &mut Scope {
        &mut self.scope
    }

    /// What the session wants now. Must be called again until it waits or has ended.
    pub(crate) fn poll(&mut self, shared: &mut SharedState<'_>) -> Act {
        while self.failed.is_none() {
            let Some(branch) = self.ready.pop() else {
                let done = self.branches[0].frames.is_empty();
                return if done { Act::Ended(Ok(())) } else { Act::Wait };
            };
            if let Some(act) = self.advance(branch, shared) {
                return act;
            }
        }
        // A failed session waits for its requests in flight, so that every request has an end.
        match self.in_flight {
            0 => Act::Ended(Err(self.failed.take().unwrap_or_default())),
            _ => Act::Wait,
        }
    }

    /// A pause is over.
    pub(crate) fn resume(&mut self, branch: u32) {
        self.steps_at_once = 0;
        self.ready.push(branch);
    }

    /// Writes the request that the branch wants to send. Returns whether to record the answer's body.
    ///
    /// # Errors
    /// The name of the error, if the request cannot be written.
    pub(crate) fn write_request(
        &mut self,
        branch: u32,
        shared: &mut SharedState<'_>,
        request: &mut PreparedRequest,
    ) -> Result<Recording, &'static str> {
        let step = self.request_step(branch, shared.script);
        let redirect = self.branches[branch as usize].redirect.as_ref();
        let mut context = TemplateContext { scope: &self.scope, random: &mut *shared.random };
        let (script, scratch) = (shared.script, &mut *shared.scratch);
        request_writer::write(
            step,
            redirect,
            script,
            &mut context,
            &mut self.jar,
            scratch,
            request,
        )?;
        Ok(step.recording())
    }

    /// The request of the branch is under way.
    pub(crate) fn sent(&mut self) {
        self.steps_at_once = 0;
        self.in_flight += 1;
    }

    pub(crate) fn request_step<'s>(&self, branch: u32, script: &'s Script) -> &'s RequestStep {
        let (block, at) = self.branches[branch as usize].request.expect("a request is under way");
        match script.steps.step(block, at) {
            Some(Step::Request(step)) => step,
            _ => unreachable!("the place of a request holds one"),
        }
    }

    /// The branch's request, which went to `path`, was answered.
    pub(crate) fn answered(
        &mut self,
        branch: u32,
        status: u16,
        path: &str,
        recorded: &RecordedResponse,
        shared: &mut SharedState<'_>,
    ) {
        self.in_flight -= 1;
        let place = RequestPlace { path, ..shared.script.origin.place() };
        for line in recorded.headers("set-cookie") {
            self.jar.store(line, place);
        }
        if self.failed.is_some() || self.follows(branch, status, path, recorded, shared) {
            return;
        }
        let step = self.request_step(branch, shared.script);
        let answer = Response::new(status, recorded);
        let (captured, verdict) = self.look(&answer, step, shared);
        for (variable, value) in captured {
            self.scope.set(variable, value);
        }
        let checked = self.check(&answer, step, shared);
        match verdict.and(checked) {
            Ok(()) => self.ready.push(branch),
            Err(error) => self.failed = Some(error),
        }
    }

    /// The branch's request has failed without an answer.
    pub(crate) fn request_failed(&mut self, error: &str) {
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

    fn advance(&mut self, branch: u32, shared: &mut SharedState<'_>) -> Option<Act> {
        if self.branches[branch as usize].redirect.is_some() {
            return Some(Act::Send(branch));
        }
        while self.steps_at_once < MAX_STEPS_AT_ONCE {
            self.steps_at_once += 1;
            let Some(frame) = self.branches[branch as usize].frames.last_mut() else {
                self.join(branch, shared.script);
                return None;
            };
            let place = (frame.block, frame.at);
            let Some(step) = shared.script.steps.step(place.0, place.1) else {
                self.finish_block(branch, shared.script);
                continue;
            };
            frame.at += 1;
            match step {
                Step::Request(step) => {
                    if self.wants(step, shared.random) {
                        let branch_state = &mut self.branches[branch as usize];
                        branch_state.request = Some(place);
                        branch_state.hops = 0;
                        return Some(Act::Send(branch));
                    }
                }
                Step::Think(think) => match self.think(branch, think, shared.random) {
                    // It counts as no step: a loop of these would never leave the thread.
                    Some(Act::Pause(_, 0)) => {}
                    act => return act,
                },
                Step::Log(text) => {
                    self.ready.push(branch);
                    let said = text.to_string(&self.scope, shared.random);
                    return Some(Act::Log(load::visible(&said).into_owned()));
                }
                Step::Loop(spec) => self.enter_loop(branch, spec, place, shared.random),
                Step::Parallel(spec) => {
                    self.fork(branch, spec, place);
                    return None;
                }
            }
        }
        Some(Act::Pause(branch, IDLE_PAUSE))
    }

    fn spawn(&mut self, block: BlockId, parent: Option<u32>) {
        let frame = Frame { block, at: 0, round: None };
        let free = match parent {
            None => (!self.branches.is_empty()).then_some(0),
            Some(_) => (1..self.branches.len()).find(|i| {
                self.branches[*i].parent.is_none() && self.branches[*i].frames.is_empty()
            }),
        };
        let index = free.unwrap_or_else(|| {
            self.branches.push(Branch::default());
            self.branches.len() - 1
        });
        let branch = &mut self.branches[index];
        branch.frames.clear();
        branch.frames.push(frame);
        (branch.parent, branch.request, branch.redirect) = (parent, None, None);
        branch.fork = None;
        self.ready.push(index as u32);
    }

    /// The branch has ended. The branch that waits for it may go on.
    fn join(&mut self, branch: u32, script: &Script) {
        let Some(parent) = self.branches[branch as usize].parent.take() else {
            return;
        };
        let Some(fork) = &mut self.branches[parent as usize].fork else {
            return;
        };
        fork.running -= 1;
        let Some(Step::Parallel(spec)) = script.steps.step(fork.step.0, fork.step.1) else {
            return;
        };
        match spec.branches.get(fork.next) {
            Some(block) => {
                fork.next += 1;
                fork.running += 1;
                self.spawn(*block, Some(parent));
            }
            None if fork.running == 0 => {
                self.branches[parent as usize].fork = None;
                self.ready.push(parent);
            }
            None => {}
        }
    }

    fn fork(&mut self, branch: u32, spec: &Parallel, step: (BlockId, u32)) {
        let first = &spec.branches[..spec.limit.min(spec.branches.len())];
        if first.is_empty() {
            self.ready.push(branch);
            return;
        }
        let fork = Fork { step, next: first.len(), running: first.len() as u32 };
        self.branches[branch as usize].fork = Some(fork);
        // The last one spawned goes first.
        for block in first.iter().rev() {
            self.spawn(*block, Some(branch));
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

    fn think(&mut self, branch: u32, think: &Think, random: &mut SmallRng) -> Option<Act> {
        let length = match &think.length {
            ThinkTime::Fixed(length) => Some(*length),
            ThinkTime::Text(text) => quantity::seconds(&text.to_string(&self.scope, random)),
        };
        let Some(length) = length else {
            self.fail("Invalid think time");
            return None;
        };
        let spread = match think.jitter {
            None => return Some(Act::Pause(branch, length)),
            Some(Jitter::Time(spread)) => spread as f64,
            Some(Jitter::Share(share)) => length as f64 * share,
        };
        let jittered = length as f64 + spread * random.random_range(-1.0..=1.0);
        Some(Act::Pause(branch, jittered.max(0.0) as Nanos))
    }

    // Answers.

    /// Whether the answer is a redirect, and the session follows it.
    fn follows(
        &mut self,
        branch: u32,
        status: u16,
        path: &str,
        recorded: &RecordedResponse,
        shared: &SharedState<'_>,
    ) -> bool {
        let step = self.request_step(branch, shared.script);
        let state = &mut self.branches[branch as usize];
        let resend = state.redirect.take().map_or(Resend::Whole, |redirect| redirect.resend);
        let followed = matches!(status, 300..=303 | 307 | 308);
        let location = recorded.header("location");
        let (true, Redirects::Follow, Some(location)) = (followed, step.redirects, location) else {
            return false;
        };
        state.hops += 1;
        if state.hops > MAX_HOPS {
            self.fail("ERR_TOO_MANY_REDIRECTS");
            return true;
        }
        match Redirect::of(location, status, path, resend, &shared.script.origin) {
            Ok(redirect) => {
                state.redirect = Some(redirect);
                self.ready.push(branch);
            }
            Err(error) => self.fail(error),
        }
        true
    }

    /// The captured values, and whether the session may go on. If one capture fails, none is set.
    #[allow(clippy::type_complexity)]
    fn look(
        &self,
        answer: &Response<'_>,
        step: &RequestStep,
        shared: &mut SharedState<'_>,
    ) -> (Vec<(u32, Value)>, Result<(), String>) {
        let mut context = TemplateContext { scope: &self.scope, random: &mut *shared.random };
        let captured: Option<Vec<(u32, Value)>> = step
            .captures
            .iter()
            .map(|capture| Some((capture.variable, capture.take(answer, &mut context)?)))
            .collect();
        let matched = step.matches.iter().all(|one| one.holds(answer, &mut context));
        match captured.filter(|_| matched) {
            Some(captured) => (captured, Ok(())),
            None => (Vec::new(), Err("Failed capture or match".to_owned())),
        }
    }

    fn check(
        &self,
        answer: &Response<'_>,
        step: &RequestStep,
        shared: &mut SharedState<'_>,
    ) -> Result<(), String> {
        let mut context = TemplateContext { scope: &self.scope, random: &mut *shared.random };
        let mut all = true;
        for expectation in &step.expectations {
            let holds = expectation.holds(answer, &mut context);
            shared.tally.checked(expectation.name(), holds);
            all &= holds;
        }
        match all || !shared.script.settings.failed_expectations_end_sessions {
            true => Ok(()),
            false => Err(format!("Failed expectations for request {}", step.label)),
        }
    }
}

impl RequestStep {
    fn recording(&self) -> Recording {
        let body = self.captures.iter().any(|one| one.source.looks_at_body())
            || self.matches.iter().any(|one| one.source.looks_at_body())
            || self.expectations.iter().any(Expectation::looks_at_body);
        if body { Recording::Body } else { Recording::Head }
    }
}

#[cfg(test)]
mod tests;
