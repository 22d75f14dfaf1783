//! Steps of several shards on their way to be one.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use linkweir_sketch::Step;

/// Steps that wait for a shard, at most: one that gives none must not hold all the others in memory.
const MAX_WAITING: usize = 8;

/// Steps that are not yet written.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    waiting: BTreeMap<u64, Arc<Step>>,
    /// The last step that each shard has given.
    shards: HashMap<u32, u64>,
    /// One more than the last step that was given away.
    next: u64,
}

impl Steps {
    /// Takes the step of one shard. What comes after its step was given away counts in the next one:
    /// nothing is lost.
    pub(crate) fn add(&mut self, step: &Arc<Step>) {
        let last = self.shards.entry(step.shard).or_insert(step.number);
        *last = step.number.max(*last);
        let first_waiting = self.waiting.first_key_value().map(|(number, _)| *number);
        let number = if step.number < self.next {
            first_waiting.unwrap_or(self.next)
        } else {
            step.number
        };
        if let Some(whole) = self.waiting.get_mut(&number) {
            Arc::make_mut(whole).merge(step);
            return;
        }
        let mut step = Arc::clone(step);
        if step.number != number {
            Arc::make_mut(&mut step).number = number;
        }
        self.waiting.insert(number, step);
    }

    /// The next step that is complete: all shards have passed it. The last steps of a run wait for
    /// [`Self::rest`], because only then the very last one is known.
    pub(crate) fn next_complete(&mut self) -> Option<Arc<Step>> {
        let entry = self.waiting.first_entry()?;
        let step = entry.get();
        let passed = self.shards.values().min().copied().unwrap_or_default();
        let has_all = self.shards.len() as u64 >= u64::from(step.shards);
        let is_complete = has_all && step.number <= passed && !step.is_last;
        if is_complete || self.waiting.len() > MAX_WAITING {
            let (number, step) = self.waiting.pop_first()?;
            self.next = number.saturating_add(1);
            return Some(step);
        }
        None
    }

    /// All that is left, in order, at the end of the run; with each whether it is the last.
    pub(crate) fn rest(&mut self) -> impl Iterator<Item = (Arc<Step>, bool)> {
        let waiting = std::mem::take(&mut self.waiting);
        let last = waiting.last_key_value().map(|(number, _)| *number);
        waiting
            .into_iter()
            .map(move |(number, step)| (step, Some(number) == last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(number: u64, shard: u32, shards: u32, is_last: bool) -> Arc<Step> {
        Arc::new(Step {
            number,
            shard,
            shards,
            is_last,
            flow_us: [1, 0],
            ..Step::default()
        })
    }

    #[test]
    fn steps_wait_for_all_shards() {
        let mut steps = Steps::default();
        steps.add(&step(5, 0, 2, false));
        steps.add(&step(6, 0, 2, false));
        assert!(steps.next_complete().is_none());
        steps.add(&step(6, 1, 2, false));
        // The other shard had nothing in step 5.
        let five = steps.next_complete().unwrap();
        assert_eq!((five.number, five.flow_us), (5, [1, 0]));
        let six = steps.next_complete().unwrap();
        assert_eq!((six.number, six.flow_us), (6, [2, 0]));
        steps.add(&step(7, 1, 2, true));
        steps.add(&step(8, 0, 2, true));
        assert!(steps.next_complete().is_none());
        let rest: Vec<_> = steps.rest().map(|(s, last)| (s.number, last)).collect();
        assert_eq!(rest, [(7, false), (8, true)]);
        assert_eq!(steps.rest().count(), 0);
    }

    #[test]
    fn a_silent_shard_does_not_hold_everything() {
        let mut steps = Steps::default();
        for number in 0..100 {
            steps.add(&step(number, 0, 2, false));
            while steps.next_complete().is_some() {}
        }
        assert_eq!(steps.waiting.len(), MAX_WAITING);
        steps.add(&step(3, 1, 2, false));
        let late = steps.next_complete();
        assert!(late.is_none());
        let rest: Vec<_> = steps
            .rest()
            .map(|(s, _)| (s.number, s.flow_us[0]))
            .collect();
        assert_eq!(rest.first(), Some(&(92, 2)));
        assert_eq!(rest.len(), MAX_WAITING);
    }
}
