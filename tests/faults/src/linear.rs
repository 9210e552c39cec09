//! An exact checker of linearizability for one register whose operations may have been left without an answer.
//!
//! It is the search of Wing and Gong with Lowe's memory of dead ends. Some rules, none of which loses a linearization, keep the
//! search short: what only reads is taken as soon as it fits; what was left without an answer is taken only right before an
//! operation that needs it; if somebody saw its value, it happened, and before that; values that nobody ever saw are one value.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

/// What a register holds: the id of what was written, or nothing.
pub type State = Option<u64>;

/// What an operation tells about the register at the instant at which it took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Guard {
    /// Nothing.
    Any,
    /// It held this.
    Is(State),
    /// It held something else than this.
    Not(State),
    /// It held a value, and not this one.
    Another(u64),
}

impl Guard {
    fn holds(self, state: State) -> bool {
        match self {
            Self::Any => true,
            Self::Is(wanted) => state == wanted,
            Self::Not(other) => state != other,
            Self::Another(other) => state.is_some_and(|id| id != other),
        }
    }

    fn named(self) -> Option<u64> {
        match self {
            Self::Any => None,
            Self::Is(state) | Self::Not(state) => state,
            Self::Another(id) => Some(id),
        }
    }
}

/// One operation. Instants are numbers of one counter, so no two are equal.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Who made it.
    pub client: u32,
    /// What it tells.
    pub guard: Guard,
    /// What it leaves behind; `None` if it changes nothing.
    pub set: Option<State>,
    /// When it was begun.
    pub begun: u64,
    /// When it was answered; `None` if nobody knows whether it took effect: it did so once, some time after its beginning, or never.
    pub ended: Option<u64>,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {} saw {:?}", self.client, self.guard)?;
        if let Some(set) = self.set {
            write!(f, " and set {set:?}")?;
        }
        match self.ended {
            Some(ended) => write!(f, " in {}..{ended}", self.begun),
            None => write!(f, " in {}.., without an answer", self.begun),
        }
    }
}

/// Why no order of the operations was found.
#[derive(Debug)]
pub enum Failure {
    /// There is none. These are the operations at which the longest attempt ended, and what the register held then.
    Stuck {
        /// What the register held.
        state: State,
        /// The operations of which one had to be next.
        next: Vec<Op>,
        /// Those that were in order before them, the last few.
        before: Vec<Op>,
    },
    /// The search was given up.
    GaveUp,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GaveUp => write!(f, "the search for an order was given up after {MOST_STEPS} steps"),
            Self::Stuck { state, next, before } => {
                write!(f, "it held {state:?} after")?;
                before.iter().try_for_each(|op| write!(f, "\n    {op}"))?;
                write!(f, "\n  and none of these can be next:")?;
                next.iter().try_for_each(|op| write!(f, "\n    {op}"))
            }
        }
    }
}

const MOST_STEPS: usize = 1_000_000;
/// Stands for every id that no guard names.
const UNSEEN: u64 = u64::MAX;

/// Finds an order in which `ops` can have happened one after the other, each between its beginning and its end, on a register that
/// held `initial`.
///
/// # Errors
/// If there is none.
pub fn check(initial: State, ops: &[Op]) -> Result<(), Failure> {
    Search::new(initial, ops).run()
}

struct Search {
    /// What was answered, or seen by somebody who was, by beginning.
    must: Vec<Op>,
    /// What was neither, in classes of equals, each by beginning: the first of them is as good as any other.
    may: Vec<(Guard, State, Vec<u64>)>,
    /// Those classes that build on a value that is put only once: they are over when it is.
    built_on: HashMap<u64, Vec<usize>>,
    start: Node,
}

/// How far an attempt has come.
#[derive(Clone)]
struct Node {
    place: Place,
    /// How many of each class of `may` are in order. Of two attempts in one place, the one that used less can do all that the
    /// other one can.
    used: Vec<u16>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    /// All of `must` before this are in order …
    base: usize,
    /// … and these behind it, ascending.
    ahead: Vec<usize>,
    state: State,
    /// What the register held before the unanswered operation that was the last one in order.
    before: Option<State>,
}

impl Search {
    fn new(initial: State, ops: &[Op]) -> Self {
        let named: HashSet<u64> = ops.iter().filter_map(|op| op.guard.named()).collect();
        let seen = |state: State| state.map(|id| if named.contains(&id) { id } else { UNSEEN });
        let mut setters = HashMap::<u64, usize>::new();
        ops.iter().filter_map(|op| op.set?).for_each(|id| *setters.entry(id).or_default() += 1);
        let set_once = |id: u64| setters.get(&id).is_none_or(|&count| count < 2);
        let mut first_seen = HashMap::<u64, u64>::new();
        for op in ops {
            if let (Guard::Is(Some(id)), Some(ended)) = (op.guard, op.ended) {
                first_seen.entry(id).and_modify(|first| *first = ended.min(*first)).or_insert(ended);
            }
        }
        let mut must = Vec::new();
        let mut may = BTreeMap::<(Guard, State), Vec<u64>>::new();
        for op in ops {
            let seen_by = op.set.flatten().filter(|&id| set_once(id)).and_then(|id| first_seen.get(&id).copied());
            match (op.ended.or(seen_by), op.set) {
                (Some(ended), set) => must.push(Op { set: set.map(seen), ended: Some(ended), ..*op }),
                (None, Some(set)) => may.entry((op.guard, seen(set))).or_default().push(op.begun),
                // It changed nothing, and nobody knows what it saw.
                (None, None) => {}
            }
        }
        must.sort_by_key(|op| op.begun);
        let may: Vec<_> = may
            .into_iter()
            .map(|((guard, set), mut begun)| {
                begun.sort_unstable();
                (guard, set, begun)
            })
            .collect();
        let mut built_on = HashMap::<u64, Vec<usize>>::new();
        for (class, (guard, ..)) in may.iter().enumerate() {
            if let Guard::Is(Some(id)) = guard
                && set_once(*id)
            {
                built_on.entry(*id).or_default().push(class);
            }
        }
        let place = Place { base: 0, ahead: Vec::new(), state: seen(initial), before: None };
        let start = Node { place, used: vec![0; may.len()] };
        Self { must, may, built_on, start }
    }

    fn run(self) -> Result<(), Failure> {
        let mut visited = HashMap::<Place, Vec<Vec<u16>>>::new();
        let mut furthest = self.start.place.clone();
        let mut stack = vec![self.start.clone()];
        let mut steps = 0;
        while let Some(mut node) = stack.pop() {
            self.take_reads(&mut node.place);
            if node.place.base == self.must.len() {
                return Ok(());
            }
            let beaten = visited.entry(node.place.clone()).or_default();
            if beaten.iter().any(|used| used.iter().zip(&node.used).all(|(theirs, ours)| theirs <= ours)) {
                continue;
            }
            beaten.push(node.used.clone());
            steps += 1;
            if steps > MOST_STEPS {
                return Err(Failure::GaveUp);
            }
            if node.place.count() > furthest.count() {
                furthest = node.place.clone();
            }
            self.push_children(&node, &mut stack);
        }
        Err(self.stuck(&furthest))
    }

    /// Those of `must` that can be next, and the instant before which what comes next must have begun.
    fn next(&self, place: &Place) -> (Vec<usize>, u64) {
        let mut next = Vec::new();
        let mut limit = u64::MAX;
        let mut ahead = place.ahead.iter().copied().peekable();
        for (at, op) in self.must.iter().enumerate().skip(place.base) {
            if op.begun > limit {
                break;
            }
            if ahead.next_if_eq(&at).is_none() {
                next.push(at);
                limit = limit.min(op.ended.unwrap_or(u64::MAX));
            }
        }
        (next, limit)
    }

    /// What changes nothing and fits can be next at once: whatever comes after it could also come after it now.
    fn take_reads(&self, place: &mut Place) {
        loop {
            let (next, _) = self.next(place);
            let fits = |&&at: &&usize| self.must[at].set.is_none() && self.must[at].guard.holds(place.state);
            let Some(&at) = next.iter().find(fits) else { return };
            place.take(at);
            place.before = None;
        }
    }

    fn push_children(&self, node: &Node, stack: &mut Vec<Node>) {
        let Node { place, used } = node;
        let (mut next, limit) = self.next(place);
        let fits = |guard: Guard| guard.holds(place.state) && !place.before.is_some_and(|before| guard.holds(before));
        for (class, (guard, set, begun)) in self.may.iter().enumerate() {
            let first = begun.get(usize::from(used[class])).copied();
            if first.is_some_and(|first| first < limit) && *set != place.state && fits(*guard) {
                let mut child = node.clone();
                child.used[class] += 1;
                self.set(&mut child, *set);
                child.place.before = Some(place.state);
                stack.push(child);
            }
        }
        // What was answered first is tried first, so it is pushed last.
        next.sort_by_key(|&at| std::cmp::Reverse(self.must[at].ended));
        for at in next {
            let op = self.must[at];
            if let Some(set) = op.set
                && fits(op.guard)
            {
                let mut child = node.clone();
                child.place.take(at);
                self.set(&mut child, set);
                child.place.before = None;
                stack.push(child);
            }
        }
    }

    fn set(&self, node: &mut Node, state: State) {
        let over = node.place.state.and_then(|id| self.built_on.get(&id));
        over.into_iter().flatten().for_each(|&class| node.used[class] = 0);
        node.place.state = state;
    }

    fn stuck(&self, place: &Place) -> Failure {
        let done = (0..place.base).chain(place.ahead.iter().copied());
        let mut before: Vec<Op> = done.map(|at| self.must[at]).collect();
        before.sort_by_key(|op| op.ended);
        let before = before.split_off(before.len().saturating_sub(8));
        let next = self.next(place).0.into_iter().map(|at| self.must[at]).collect();
        Failure::Stuck { state: place.state, next, before }
    }
}

impl Place {
    fn take(&mut self, at: usize) {
        let place = self.ahead.partition_point(|&other| other < at);
        self.ahead.insert(place, at);
        let joined = self.ahead.iter().zip(self.base..).take_while(|(ahead, base)| *ahead == base).count();
        self.ahead.drain(..joined);
        self.base += joined;
    }

    fn count(&self) -> usize {
        self.base + self.ahead.len()
    }
}

/// Checks many registers, each on its own, and gives back those that fail. All are empty at first.
pub fn check_all<K: Clone>(registers: &HashMap<K, Vec<Op>>) -> Vec<(K, Failure)> {
    registers.iter().filter_map(|(name, ops)| check(None, ops).err().map(|failure| (name.clone(), failure))).collect()
}
