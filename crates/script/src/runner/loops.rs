//! Loops: the round that a branch is in, and the variables that its steps see.

use rand::rngs::SmallRng;
use serde_json::Value;

use super::branch::{Frame, Round};
use super::session::Session;
use crate::scenario::script::Script;
use crate::scenario::steps::{BlockId, Loop, Rounds, Step};
use crate::template::quantity;

impl Session {
    pub(super) fn enter_loop(
        &mut self,
        branch: u32,
        spec: &Loop,
        step: (BlockId, u32),
        random: &mut SmallRng,
    ) {
        let mut list = Vec::new();
        let (index, end) = match &spec.rounds {
            Rounds::Range(from, to) => (*from, *to),
            Rounds::Text(text) => {
                let (from, to) = quantity::rounds(&text.to_string(&self.scope, random));
                (from, to)
            }
            Rounds::List(list) => (0, Some(list.len() as i64)),
            Rounds::Over(reference) => {
                if let Some(Value::Array(elements)) = self.scope.get(reference).as_deref() {
                    list.clone_from(elements);
                }
                (0, Some(list.len() as i64))
            }
        };
        let round = Round { step, first: index, index, end, list };
        if round.is_over() {
            return;
        }
        self.begin_round(spec, &round);
        let frame = Frame { block: spec.body, at: 0, round: Some(round) };
        self.branches[branch as usize].frames.push(frame);
    }

    fn begin_round(&mut self, spec: &Loop, round: &Round) {
        self.scope.set(spec.count, round.index.into());
        let element = match &spec.rounds {
            Rounds::List(list) => list.get(round.index as usize).cloned(),
            Rounds::Over(_) => round.list.get(round.index as usize).cloned(),
            Rounds::Range(..) | Rounds::Text(_) => None,
        };
        self.scope.set(spec.element, element.unwrap_or_else(|| round.first.into()));
    }

    pub(super) fn finish_block(&mut self, branch: u32, script: &Script) {
        let Some(mut frame) = self.branches[branch as usize].frames.pop() else {
            return;
        };
        let Some(mut round) = frame.round.take() else {
            return;
        };
        round.index += 1;
        if round.is_over() {
            return;
        }
        if let Some(Step::Loop(spec)) = script.steps.step(round.step.0, round.step.1) {
            self.begin_round(spec, &round);
        }
        frame.at = 0;
        frame.round = Some(round);
        self.branches[branch as usize].frames.push(frame);
    }
}
