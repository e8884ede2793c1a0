//! What kinds of people come.

use rand::{Rng, RngExt};

/// A card that pays.
pub(super) const GOOD_CARD: &str = "pm_card_visa";
/// Cards that don't.
const BAD_CARDS: [&str; 3] = [
    "pm_card_chargeDeclined",
    "pm_card_chargeDeclinedInsufficientFunds",
    "pm_card_visa_chargeDeclinedExpiredCard",
];
/// A card whose bank wants to see its owner.
pub(super) const CAREFUL_CARD: &str = "pm_card_authenticationRequired";

/// What a buyer does once it has its seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Character {
    Pays,
    /// Is declined once, and pays with another card.
    FindsAnotherCard,
    /// Is declined and gives its seats back.
    GivesBack,
    /// Is declined and goes.
    GivesUp,
    /// Goes without a word.
    Vanishes,
    /// Pays when the hold is over.
    PaysLate,
    Authenticates,
    /// Fails its bank's questions, and pays with another card.
    FailsAuthentication,
    /// Never answers its bank.
    IgnoresBank,
    /// Answers its bank when the time is up.
    AnswersBankLate,
}

/// Of a thousand.
const CROWD: [(Character, u32); 10] = [
    (Character::Pays, 820),
    (Character::FindsAnotherCard, 50),
    (Character::GivesBack, 20),
    (Character::GivesUp, 10),
    (Character::Vanishes, 20),
    (Character::PaysLate, 10),
    (Character::Authenticates, 50),
    (Character::FailsAuthentication, 10),
    (Character::IgnoresBank, 5),
    (Character::AnswersBankLate, 5),
];

impl Character {
    /// Whoever comes. Those who come last mean it: seats that are let go at the very end would be waited for by all.
    pub(super) fn draw(in_earnest: bool, chance: &mut impl Rng) -> Character {
        let mut left = chance.random_range(0..CROWD.iter().map(|(_, share)| share).sum());
        for (character, share) in CROWD {
            if left < share {
                return if in_earnest && character.lingers() { Character::Pays } else { character };
            }
            left -= share;
        }
        Character::Pays
    }

    /// Whether it keeps others from its seats until time frees them.
    fn lingers(self) -> bool {
        match self {
            Character::GivesUp
            | Character::Vanishes
            | Character::PaysLate
            | Character::IgnoresBank
            | Character::AnswersBankLate => true,
            Character::Pays
            | Character::FindsAnotherCard
            | Character::GivesBack
            | Character::Authenticates
            | Character::FailsAuthentication => false,
        }
    }

    /// The cards it tries, one after the other.
    pub(super) fn cards(self, chance: &mut impl Rng) -> Vec<&'static str> {
        let bad = BAD_CARDS[chance.random_range(0..BAD_CARDS.len())];
        match self {
            Character::Vanishes => vec![],
            Character::Pays | Character::PaysLate => vec![GOOD_CARD],
            Character::FindsAnotherCard => vec![bad, GOOD_CARD],
            Character::GivesBack | Character::GivesUp => vec![bad],
            Character::FailsAuthentication => vec![CAREFUL_CARD, GOOD_CARD],
            Character::Authenticates | Character::IgnoresBank | Character::AnswersBankLate => {
                vec![CAREFUL_CARD]
            }
        }
    }
}

/// How a request is sent that may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Once,
    /// Again after the answer, to be sure.
    Again,
    /// Two at once, as from a nervous finger.
    Doubled,
    /// The connection breaks before the answer; then again.
    Broken,
}

impl Manner {
    pub(super) fn draw(chance: &mut impl Rng) -> Manner {
        match chance.random_range(0..100) {
            0..4 => Manner::Again,
            4..6 => Manner::Doubled,
            6..8 => Manner::Broken,
            _ => Manner::Once,
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn all_kinds_come_and_the_last_do_not_linger() {
        let mut chance = StdRng::seed_from_u64(1);
        let mut draw = |in_earnest| -> Vec<Character> {
            (0..5_000).map(|_| Character::draw(in_earnest, &mut chance)).collect()
        };
        let (early, late) = (draw(false), draw(true));
        assert!(CROWD.iter().all(|(character, _)| early.contains(character)));
        assert!(!late.iter().any(|character| character.lingers()));
        assert!(late.contains(&Character::GivesBack));
    }
}
