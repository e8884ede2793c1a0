//! What a worker does about an operation that is due: what to ask of the provider, what to keep of its answers, and when
//! to stop. An errand does no I/O, so the program and the simulated worlds carry out the very same steps.
//!
//! An operation whose answer was lost is asked about, and sent again only when the provider says that it wasn't done
//! under the same key, and never past the key's horizon.

use crate::command::{Answer, Command, Outcome};
use crate::gateway::{IntentState, Observation};
use crate::limits::KEY_HORIZON_MS;
use crate::payment::{Operation, OperationKind, OperationStatus, query_backoff_ms};
use crate::time::{Timestamp, seconds};

/// How long an operation that could not be sent waits at first.
const RESEND_MS: i64 = seconds(1);
/// How often an attempt that waits for its buyer is looked at again when the provider didn't answer.
const ACTION_RETRY_MS: i64 = seconds(10);

/// What is asked of the provider. All but the first name the attempt's object.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the members say what they are: the object's name, and the card")]
pub enum Call {
    /// Make the attempt's object without confirming it: its name can be kept before money moves.
    Create,
    /// Say how it stands.
    Query { reference: String },
    /// Confirm it with a card. From here on money can move.
    Confirm { reference: String, card: String },
    /// Take money that was set aside.
    Capture { reference: String },
    /// Call it off, and let money set aside go.
    Cancel { reference: String },
    /// Give money back.
    Refund { reference: String },
}

/// How a call ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// With the object's state.
    Observed(Observation),
    /// It never left: certainly not done.
    NotSent,
    /// Turned away for now: not done.
    Busy {
        /// When to come back, as far as the provider says.
        retry_after_s: Option<u64>,
    },
    /// A definite no, with the provider's code.
    Refused(String),
    /// Nothing, or nothing that can be understood: it may or may not have been done.
    NoAnswer,
}

/// What is to be done next.
#[derive(Clone, Debug)]
pub enum Step {
    /// Ask the provider, and bring the reply to [`Errand::replied`].
    Ask(Call),
    /// Have this decided, and bring the outcome to [`Errand::kept`].
    Keep(Command),
    /// Nothing more until the operation is due again.
    Done,
}

/// One operation on its way to its next answer.
#[derive(Clone, Debug)]
pub struct Errand {
    operation: Operation,
    stage: Stage,
}

#[derive(Clone, Debug)]
enum Stage {
    /// The object is being made.
    Making,
    /// Its name is being kept.
    Naming { reference: String },
    /// The provider is asked how it stands.
    Asking { reference: String },
    /// What it said is being kept.
    Told { reference: String },
    /// The operation itself is being sent.
    Sending { reference: String },
    /// It was refused, and the provider is asked how the object stands.
    Refused { code: String },
    /// The last word is being kept.
    Ending,
}

impl Errand {
    /// Begins to work on an operation that is due.
    pub fn begin(operation: Operation, now: Timestamp) -> (Errand, Step) {
        let mut errand = Errand { operation, stage: Stage::Ending };
        let step = errand.first(now);
        (errand, step)
    }

    /// The operation as it was when it was taken up.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    fn first(&mut self, now: Timestamp) -> Step {
        let Some(reference) = self.operation.reference.clone() else {
            return match self.operation.kind {
                OperationKind::Authorize => {
                    self.stage = Stage::Making;
                    Step::Ask(Call::Create)
                }
                // Nothing was ever made at the provider for the attempt: there is nothing to act on.
                OperationKind::Capture | OperationKind::Void | OperationKind::Refund => {
                    self.end(Answer::Refused("no_payment".to_owned()))
                }
            };
        };
        // What is still to be done is sent; should it have been done, the provider knows its key and says so.
        let is_new = self.operation.status == OperationStatus::Pending;
        if self.operation.kind != OperationKind::Authorize && is_new && self.is_young(now) {
            return self.send(reference, now);
        }
        self.stage = Stage::Asking { reference: reference.clone() };
        Step::Ask(Call::Query { reference })
    }

    /// The provider has replied, or hasn't in time.
    pub fn replied(&mut self, reply: Reply, now: Timestamp) -> Step {
        match std::mem::replace(&mut self.stage, Stage::Ending) {
            Stage::Making => self.made(reply, now),
            Stage::Asking { reference } => match reply {
                Reply::Observed(observation) => {
                    self.stage = Stage::Told { reference };
                    self.keep(Answer::Observed(observation))
                }
                // Waiting for the buyer isn't doubt.
                _ if self.operation.status == OperationStatus::RequiresAction => {
                    self.end(Answer::Busy(ACTION_RETRY_MS))
                }
                _ => self.end(Answer::NoAnswer),
            },
            Stage::Sending { reference } => match reply {
                Reply::Observed(observation) => self.end(Answer::Observed(observation)),
                Reply::Refused(code) if self.operation.kind == OperationKind::Authorize => {
                    self.end(Answer::Refused(code))
                }
                // A refusal may only say that the object has moved on: what it has become is the answer.
                Reply::Refused(code) => {
                    self.stage = Stage::Refused { code };
                    Step::Ask(Call::Query { reference })
                }
                Reply::NotSent | Reply::Busy { .. } => self.end(Answer::Busy(self.wait_ms(&reply))),
                Reply::NoAnswer
                    if planted!(SilenceEndsReturn) && self.operation.kind != OperationKind::Authorize =>
                {
                    self.end(Answer::Refused("given_up".to_owned()))
                }
                Reply::NoAnswer => self.end(Answer::NoAnswer),
            },
            // Only when it stands where it stood is the refusal one.
            Stage::Refused { code } => match reply {
                Reply::Observed(observation) if self.has_moved(&observation) => {
                    self.end(Answer::Observed(observation))
                }
                Reply::Observed(_) => self.end(Answer::Refused(code)),
                _ => self.end(Answer::NoAnswer),
            },
            Stage::Naming { .. } | Stage::Told { .. } | Stage::Ending => Step::Done,
        }
    }

    /// What was to be kept has been decided.
    pub fn kept(&mut self, outcome: &Outcome, now: Timestamp) -> Step {
        match std::mem::replace(&mut self.stage, Stage::Ending) {
            Stage::Naming { reference } if *outcome == Outcome::MayConfirm => self.send(reference, now),
            Stage::Told { reference } if matches!(outcome, Outcome::Recorded { send: true, .. }) => {
                self.send(reference, now)
            }
            _ => Step::Done,
        }
    }

    fn made(&mut self, reply: Reply, now: Timestamp) -> Step {
        match reply {
            // Its name is kept, and only then is it confirmed: whatever is lost after this can be asked about.
            Reply::Observed(Observation { reference, .. }) if planted!(NameNotKept) => {
                self.send(reference, now)
            }
            Reply::Observed(Observation { reference, .. }) => {
                let command =
                    Command::RecordReference { operation: self.operation.id, reference: reference.clone() };
                self.stage = Stage::Naming { reference };
                Step::Keep(command)
            }
            Reply::Refused(code) => self.end(Answer::Refused(code)),
            // No money moves by making the object: whether it was made or not, the same key makes it once.
            Reply::NotSent | Reply::Busy { .. } | Reply::NoAnswer => {
                self.end(Answer::Busy(self.wait_ms(&reply)))
            }
        }
    }

    /// Whether the provider still knows the operation's key.
    fn is_young(&self, now: Timestamp) -> bool {
        now.since_ms(self.operation.created_at) < KEY_HORIZON_MS || planted!(SentPastHorizon)
    }

    /// Sends the operation itself, under its own key.
    fn send(&mut self, reference: String, now: Timestamp) -> Step {
        // The machine may have slept since this was decided. Whoever takes the operation up next asks first.
        if !self.is_young(now) {
            return Step::Done;
        }
        let call = match self.operation.kind {
            OperationKind::Authorize => {
                let Some(card) = self.operation.payment_method_token.clone() else {
                    return self.end(Answer::Refused("card_forgotten".to_owned()));
                };
                Call::Confirm { reference: reference.clone(), card }
            }
            OperationKind::Capture => Call::Capture { reference: reference.clone() },
            OperationKind::Void => Call::Cancel { reference: reference.clone() },
            OperationKind::Refund => Call::Refund { reference: reference.clone() },
        };
        self.stage = Stage::Sending { reference };
        Step::Ask(call)
    }

    fn keep(&self, answer: Answer) -> Step {
        Step::Keep(Command::RecordAnswer { operation: self.operation.id, answer })
    }

    fn end(&mut self, answer: Answer) -> Step {
        self.stage = Stage::Ending;
        self.keep(answer)
    }

    fn has_moved(&self, observation: &Observation) -> bool {
        match self.operation.kind {
            OperationKind::Authorize => true,
            OperationKind::Capture => observation.state != IntentState::Authorized,
            OperationKind::Void => matches!(observation.state, IntentState::Voided | IntentState::Captured),
            OperationKind::Refund => {
                observation.refunded_minor >= self.operation.base_minor + self.operation.amount.amount_minor
            }
        }
    }

    fn wait_ms(&self, reply: &Reply) -> i64 {
        match reply {
            Reply::Busy { retry_after_s: Some(after) } => seconds((*after).clamp(1, 300) as i64),
            _ => query_backoff_ms(self.operation.tries).max(RESEND_MS),
        }
    }
}
