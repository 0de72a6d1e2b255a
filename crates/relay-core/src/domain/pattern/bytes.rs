//! A set of byte values, the label of every automaton edge.
//!
//! What the sets mean (wildcards, brackets, letter case) is decided by the modules that build them.

/// A set of byte values as a 256-bit map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ByteSet([u64; 4]);

impl ByteSet {
    pub const EMPTY: Self = Self([0; 4]);
    pub const ALL: Self = Self([u64::MAX; 4]);
    /// What `*`, `?` and brackets are confined to.
    pub const NOT_SLASH: Self = Self::ALL.minus(Self::one(b'/'));
    /// The bytes outside ASCII.
    pub const HIGH: Self = Self::range(0x80, 0xff);

    pub const fn one(byte: u8) -> Self {
        Self::range(byte, byte)
    }

    /// The bytes from `low` to `high`, both included; empty when they are reversed.
    pub const fn range(low: u8, high: u8) -> Self {
        let mut words = [0; 4];
        let (mut first, high) = (low as usize, high as usize);
        while first <= high {
            let last = if high < first | 63 { high } else { first | 63 };
            words[first / 64] = (u64::MAX >> (63 - (last - first))) << (first % 64);
            first = last + 1;
        }
        Self(words)
    }

    pub const fn and(self, other: Self) -> Self {
        let ([a, b, c, d], [w, x, y, z]) = (self.0, other.0);
        Self([a & w, b & x, c & y, d & z])
    }

    pub const fn or(self, other: Self) -> Self {
        let ([a, b, c, d], [w, x, y, z]) = (self.0, other.0);
        Self([a | w, b | x, c | y, d | z])
    }

    pub const fn not(self) -> Self {
        let [a, b, c, d] = self.0;
        Self([!a, !b, !c, !d])
    }

    pub const fn minus(self, other: Self) -> Self {
        self.and(other.not())
    }

    pub const fn contains(&self, byte: u8) -> bool {
        self.0[(byte / 64) as usize] & (1 << (byte % 64)) != 0
    }

    pub const fn is_empty(self) -> bool {
        let [a, b, c, d] = self.0;
        a | b | c | d == 0
    }

    pub fn from_predicate(mut holds: impl FnMut(u8) -> bool) -> Self {
        let bytes = (0..=u8::MAX).filter(|byte| holds(*byte));
        bytes.fold(Self::EMPTY, |set, byte| set.or(Self::one(byte)))
    }

    /// The set with the other ASCII case of each of its letters.
    pub fn fold_case(self) -> Self {
        Self::from_predicate(|byte| {
            self.contains(byte.to_ascii_lowercase()) || self.contains(byte.to_ascii_uppercase())
        })
    }

    /// The member a person reads most easily, since it ends up in the example of a conflict.
    pub fn most_readable(self) -> Option<u8> {
        const PREFERENCES: [ByteSet; 6] = [
            ByteSet::range(b'a', b'z'),
            ByteSet::range(b'0', b'9'),
            ByteSet::range(b'A', b'Z'),
            ByteSet::range(b'!', b'~'),
            ByteSet::one(b' '),
            ByteSet::ALL,
        ];
        let choices = PREFERENCES.iter().map(|preferred| self.and(*preferred));
        choices.filter(|set| !set.is_empty()).find_map(Self::lowest)
    }

    /// Its longest runs of bytes in order, each with its first and its last byte.
    pub fn ranges(self) -> impl Iterator<Item = (u8, u8)> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let low = rest.lowest()?;
            let gap = Self::range(low, u8::MAX).minus(rest).lowest();
            let high = gap.map_or(u8::MAX, |gap| gap - 1);
            rest = rest.minus(Self::range(low, high));
            Some((low, high))
        })
    }

    fn lowest(self) -> Option<u8> {
        let index = self.0.iter().position(|word| *word != 0)?;
        u8::try_from(index * 64 + self.0[index].trailing_zeros() as usize).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_a_member_when_any_of_its_words_has_one() {
        assert!(ByteSet::EMPTY.is_empty());
        // The same bits in two words must not cancel each other out.
        for low in (0..=u8::MAX).step_by(64) {
            for high in (0..=u8::MAX).step_by(64) {
                assert!(!ByteSet::one(low).or(ByteSet::one(high)).is_empty(), "{low} {high}");
            }
        }
    }

    #[test]
    fn what_two_sets_share_stays_in_their_union() {
        for byte in 0..=u8::MAX {
            let one = ByteSet::one(byte);
            assert_eq!(one.or(one), one);
            assert_eq!(one.and(one), one);
            assert_eq!(ByteSet::ALL.or(one), ByteSet::ALL);
        }
    }
}
