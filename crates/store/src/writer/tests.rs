//! The writer over a database that does as it is told.

use std::sync::Mutex;
use std::thread;

use onsale_core::command::{Command, Expiry, Outcome};
use onsale_core::id::{EventNo, HoldId, Seed};

use super::*;

/// What becomes of the next batch; when nothing is told, it succeeds.
enum Step {
    Decide(usize),
    NotBegun,
    NotDone,
    Unknown,
}

/// A database whose batches go as told, and that panics or fails at the requests it is told to.
#[derive(Default)]
struct Told {
    steps: VecDeque<Step>,
    panics_at: Option<u128>,
    fails_at: Option<u128>,
    tending_panics: bool,
    /// The requests of each batch.
    seen: Arc<Mutex<Vec<Vec<u128>>>>,
}

fn number(request: &Request) -> u128 {
    match request.command {
        Command::ExpireHold { hold } => hold.0,
        _ => unreachable!("the tests ask for nothing else"),
    }
}

impl Backend for Told {
    fn commit_batch(&mut self, waiting: &mut Waiting<'_>) -> Result<Done, BatchError> {
        let step = self.steps.pop_front();
        if matches!(step, Some(Step::NotBegun)) {
            return Err(BatchError::NotBegun(StoreError::Busy));
        }
        let numbers: Vec<u128> = waiting.locked().map(number).collect();
        self.seen.lock().expect("no test panics under it").push(numbers.clone());
        assert!(!self.panics_at.is_some_and(|at| numbers.contains(&at)), "a bug in the rules");
        if self.fails_at.is_some_and(|at| numbers.contains(&at)) {
            return Err(BatchError::NotDone(StoreError::Mismatch { table: "seats", count: 0 }));
        }
        let count = match step {
            Some(Step::NotDone) => return Err(BatchError::NotDone(StoreError::Busy)),
            Some(Step::Unknown) => return Err(BatchError::Unknown(StoreError::Busy)),
            Some(Step::Decide(count)) => count,
            Some(Step::NotBegun) | None => numbers.len(),
        };
        let decision = Decision { outcome: Outcome::Expiry(Expiry::NotDue), replayed: false };
        Ok((vec![Ok(decision); count], Committed::default()))
    }

    fn tend(&mut self) {
        assert!(!self.tending_panics, "a bug in the upkeep");
    }
}

struct Standing;

impl Clock for Standing {
    fn now(&self) -> Timestamp {
        Timestamp::ZERO
    }
}

fn request(number: u128) -> Request {
    let seed = Seed::new(EventNo::HOUSE, Timestamp::ZERO, number as u64);
    Request { command: Command::ExpireHold { hold: HoldId(number) }, key: None, seed }
}

/// Queues requests 0, 1, … before the writer starts, closes the queue, and runs the writer to its end: what each was
/// answered, in a word, and what each batch was asked to decide.
fn run_with(count: u128, backend: Told) -> (String, Vec<Vec<u128>>) {
    run_publishing(count, backend, |_| ())
}

fn run_publishing(count: u128, backend: Told, publish: impl Fn(&Committed)) -> (String, Vec<Vec<u128>>) {
    let queue = Queue::new();
    let answers: Vec<_> =
        (0..count).map(|number| queue.submit(request(number), None).expect("the queue is open")).collect();
    let seen = Arc::clone(&backend.seen);
    queue.close();
    run(&queue, backend, &Standing, &publish);
    let words = answers.into_iter().map(|mut answer| match answer.try_recv().expect("it is answered") {
        Ok(_) => "done",
        Err(SubmitError::Unavailable(_)) => "not",
        Err(SubmitError::Unknown(_)) => "unknown",
        Err(SubmitError::Expired | SubmitError::Overloaded | SubmitError::Elsewhere) => "refused",
    });
    let words = words.collect::<Vec<_>>().join(" ");
    (words, std::mem::take(&mut *seen.lock().expect("no test panics under it")))
}

#[test]
fn what_a_batch_had_no_time_for_comes_next_and_in_order() {
    let steps = VecDeque::from([Step::Decide(2), Step::Decide(1)]);
    let (words, seen) = run_with(5, Told { steps, ..Told::default() });
    assert_eq!(words, "done done done done done");
    assert_eq!(seen, [vec![0, 1, 2, 3, 4], vec![2, 3, 4], vec![3, 4]]);
}

#[test]
fn a_command_that_fails_does_not_take_the_others_down() {
    let (words, seen) = run_with(4, Told { fails_at: Some(1), ..Told::default() });
    assert_eq!(words, "done not done done");
    assert_eq!(seen, [vec![0, 1, 2, 3], vec![0], vec![1], vec![2], vec![3]]);
}

#[test]
fn a_lock_that_does_not_come_is_not_waited_for_by_each() {
    let steps = VecDeque::from([Step::NotBegun]);
    let (words, seen) = run_with(3, Told { steps, ..Told::default() });
    assert_eq!((words.as_str(), seen.len()), ("not not not", 0));
    let steps = VecDeque::from([Step::NotDone, Step::Decide(1), Step::NotBegun]);
    let (words, seen) = run_with(4, Told { steps, ..Told::default() });
    assert_eq!(words, "done not not not");
    assert_eq!(seen, [vec![0, 1, 2, 3], vec![0]]);
}

/// What may have been done is never done again.
#[test]
fn a_commit_that_fails_leaves_its_commands_unknown() {
    let steps = VecDeque::from([Step::Unknown]);
    let (words, seen) = run_with(2, Told { steps, ..Told::default() });
    assert_eq!((words.as_str(), seen.len()), ("unknown unknown", 1));
    let steps = VecDeque::from([Step::NotDone, Step::Unknown]);
    let (words, _) = run_with(3, Told { steps, ..Told::default() });
    assert_eq!(words, "unknown done done");
}

#[test]
fn a_panic_in_the_rules_is_one_commands_failure() {
    let (words, seen) = run_with(3, Told { panics_at: Some(1), ..Told::default() });
    assert_eq!((words.as_str(), seen.len()), ("done not done", 4));
}

#[test]
fn a_panic_beside_the_decisions_changes_no_answer() {
    let (words, _) = run_with(2, Told { tending_panics: true, ..Told::default() });
    assert_eq!(words, "done done");
    let (words, _) = run_publishing(2, Told::default(), |_| panic!("a bug in who follows"));
    assert_eq!(words, "done done");
}

#[test]
fn a_panic_in_upkeep_leaves_the_writer_at_work() {
    let queue = Queue::<Told>::new();
    queue.chore(Box::new(|_| panic!("a bug in the upkeep"))).expect("the queue is open");
    let mut answer = queue.submit(request(0), None).expect("the queue is open");
    queue.close();
    run(&queue, Told::default(), &Standing, &|_| ());
    assert!(answer.try_recv().expect("it is answered").is_ok());
    assert!(matches!(queue.chore(Box::new(|_| ())), Err(StoreError::Closed)));
}

/// Should the writer end in a way nobody has thought of, those who wait are told and nobody queues any more.
#[test]
fn a_writer_that_ends_leaves_nobody_waiting() {
    let queue = Queue::<Told>::new();
    let mut answer = queue.submit(request(0), None).expect("the queue is open");
    drop(Ending(&*queue));
    let told = answer.try_recv().expect("it is answered");
    assert!(matches!(told, Err(SubmitError::Unavailable(_))), "{told:?}");
    assert!(matches!(queue.submit(request(1), None), Err(SubmitError::Unavailable(_))));
    assert_eq!(queue.depth(), 0);
}

/// Whoever arrives while the writer falls asleep wakes it.
#[test]
fn no_arrival_is_slept_through() {
    let queue = Queue::<Told>::new();
    thread::scope(|scope| {
        scope.spawn(|| run(&queue, Told::default(), &Standing, &|_| ()));
        let callers: Vec<_> = (0..4_u128)
            .map(|caller| {
                let queue = &queue;
                scope.spawn(move || {
                    for round in 0..2_000 {
                        if round % 7 == 0 {
                            queue.chore(Box::new(|_| ())).expect("the queue is open");
                        }
                        let answer = queue.submit(request(caller), None).expect("there is room");
                        answer.blocking_recv().expect("it is answered").expect("it is decided");
                    }
                })
            })
            .collect();
        callers.into_iter().for_each(|caller| caller.join().expect("a caller ends well"));
        queue.close();
    });
    assert_eq!(queue.stats.commands.load(Ordering::SeqCst), 8_000);
}

#[test]
fn a_deadline_that_has_passed_is_never_decided() {
    let queue = Queue::<Told>::new();
    let mut late = queue.submit(request(0), Some(Instant::now())).expect("the queue is open");
    let mut live = queue.submit(request(1), None).expect("the queue is open");
    queue.close();
    let backend = Told::default();
    let seen = Arc::clone(&backend.seen);
    run(&queue, backend, &Standing, &|_| ());
    assert_eq!(late.try_recv().expect("it is answered"), Err(SubmitError::Expired));
    assert!(live.try_recv().expect("it is answered").is_ok());
    assert_eq!(*seen.lock().expect("no test panics under it"), [vec![1]]);
}

#[test]
fn whoever_would_wait_too_long_is_told_at_once() {
    let queue = Queue::<Told>::new();
    let patience = || Some(Instant::now() + 10 * QUEUE_WAIT_MAX);
    let _first = queue.submit(request(0), patience()).expect("nobody waits yet");
    let _second = queue.submit(request(1), patience()).expect("the first has only come");
    queue.line.lock().expect("no test panics under it").jobs[0].queued_at -= QUEUE_WAIT_MAX;
    assert!(!queue.turns_away());
    assert_eq!(queue.submit(request(2), patience()).err(), Some(SubmitError::Overloaded));
    assert!(queue.turns_away(), "the next may be told without being asked what it wants");
    assert_eq!(queue.stats.overloaded.load(Ordering::Relaxed), 1);
    let _worker = queue.submit(request(3), None).expect("what a provider said is taken");
    assert_eq!(queue.depth(), 3);
    queue.take(1).expect("there is work");
    assert!(!queue.turns_away(), "there is room again");
}
