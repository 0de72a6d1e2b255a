//! The universe that patterns speak about: valid relative paths in UTF-8.
//!
//! A path is one or more segments joined by `/`, none of them empty, `.` or `..`, without NUL. The
//! searches walk this automaton beside those of the patterns, so that they consider nothing else.

use super::bytes::ByteSet;
use super::nfa::Nfa;

/// Where in a valid path the bytes read so far have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Place {
    /// At the start of a segment.
    Start,
    /// After a segment's `.`, after its `..`.
    Dot,
    DotDot,
    /// Inside a segment that is already fine; the only place where a path may end.
    Inner,
    /// Inside a UTF-8 sequence, with one to three bytes to come.
    Tail1,
    Tail2,
    Tail3,
    /// After a lead byte that restricts the byte after it.
    AfterE0,
    AfterEd,
    AfterF0,
    AfterF4,
}

type Moves = &'static [(ByteSet, Place)];

const SLASH: ByteSet = ByteSet::one(b'/');
const DOT: ByteSet = ByteSet::one(b'.');
/// ASCII without the bytes that have a meaning in a path.
const LETTER: ByteSet = ByteSet::range(0x01, 0x7f).minus(SLASH).minus(DOT);
const TAIL: ByteSet = ByteSet::range(0x80, 0xbf);

const LEADS: Moves = &[
    (ByteSet::range(0xc2, 0xdf), Place::Tail1),
    (ByteSet::range(0xe1, 0xef).minus(ByteSet::one(0xed)), Place::Tail2),
    (ByteSet::range(0xf1, 0xf3), Place::Tail3),
    (ByteSet::one(0xe0), Place::AfterE0),
    (ByteSet::one(0xed), Place::AfterEd),
    (ByteSet::one(0xf0), Place::AfterF0),
    (ByteSet::one(0xf4), Place::AfterF4),
];

impl Place {
    /// The ASCII bytes that may come next, and where each leads.
    pub fn ascii_moves(self) -> Moves {
        match self {
            Self::Start => &[(LETTER, Self::Inner), (DOT, Self::Dot)],
            Self::Dot => &[(LETTER, Self::Inner), (DOT, Self::DotDot)],
            Self::DotDot => &[(LETTER, Self::Inner), (DOT, Self::Inner)],
            Self::Inner => &[(LETTER, Self::Inner), (DOT, Self::Inner), (SLASH, Self::Start)],
            _ => &[],
        }
    }

    /// The other bytes that may come next, and where each leads.
    pub fn high_moves(self) -> Moves {
        match self {
            Self::Start | Self::Dot | Self::DotDot | Self::Inner => LEADS,
            Self::Tail1 => &[(TAIL, Self::Inner)],
            Self::Tail2 => &[(TAIL, Self::Tail1)],
            Self::Tail3 => &[(TAIL, Self::Tail2)],
            Self::AfterE0 => const { &[(ByteSet::range(0xa0, 0xbf), Self::Tail1)] },
            Self::AfterEd => const { &[(ByteSet::range(0x80, 0x9f), Self::Tail1)] },
            Self::AfterF0 => const { &[(ByteSet::range(0x90, 0xbf), Self::Tail2)] },
            Self::AfterF4 => const { &[(ByteSet::range(0x80, 0x8f), Self::Tail2)] },
        }
    }

    pub fn bit(self) -> u16 {
        1 << self as u8
    }

    /// The places from which no continuation is valid that is not valid from here too. A search
    /// that has been here can skip them.
    pub fn dominated(self) -> u16 {
        match self {
            Self::Start | Self::Dot | Self::DotDot | Self::Inner => self.bit() * 2 - 1,
            _ => self.bit(),
        }
    }
}

/// Whether a search may leave out all bytes beyond ASCII: there is a letter that every set of
/// `readers` takes if it takes any such byte, and that a set of `refusers` takes only if it takes
/// them all. Writing that letter for each of them turns any answer into an ASCII one.
pub(super) fn ascii_suffices(readers: &[&Nfa], refusers: &[&Nfa]) -> bool {
    let read = readers.iter().flat_map(|nfa| nfa.sets());
    let stand_ins = read.filter(|set| !set.and(ByteSet::HIGH).is_empty()).fold(LETTER, ByteSet::and);
    let refused = refusers.iter().flat_map(|nfa| nfa.sets());
    let stand_ins = refused.filter(|set| set.and(ByteSet::HIGH) != ByteSet::HIGH).fold(stand_ins, ByteSet::minus);
    !stand_ins.is_empty()
}

/// Whether `text` is a path of the universe.
pub(super) fn is_path(text: &str) -> bool {
    let valid = |segment: &str| !matches!(segment, "" | "." | "..");
    text.split('/').all(valid) && !text.contains('\0')
}
