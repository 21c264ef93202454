//! Policies as text, of settings and of the command line.
//!
//! | text | policy |
//! |---|---|
//! | `local` | the node of the CPU that allocates |
//! | `firsttouch` | as the kernel does at the first touch |
//! | `bind:1` | these nodes alone |
//! | `preferred:0,1` | these while they have memory |
//! | `interleave:0-3` | these in turn |
//! | `weighted:0*3,2*1` | these in turn, each as often as its weight, 1 where none is told |
//!
//! Nodes are the kernel's numbers, single ones and ranges, with commas between; no spaces.

use core::fmt;
use core::str::FromStr;

use super::{Mode, Policy};
use crate::base::nodemask::{KERNEL_NODES, NodeMask};

/// Why a text is no policy, and where that shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// Bytes of the text before what is wrong.
    pub offset: usize,
    /// What is wrong there.
    pub reason: Reason,
}

/// What can be wrong with a policy's text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// No mode has this name.
    UnknownMode,
    /// The mode wants nodes, and none are told.
    NoNodes,
    /// The mode wants no nodes, and more follows.
    Trailing,
    /// A number was expected.
    NoNumber,
    /// No kernel has a node of this number: 1024 and more.
    NodeTooLarge,
    /// The range ends before it begins.
    BackwardRange,
    /// The node is named before.
    NamedTwice,
    /// The weight is not in 1 to 255.
    BadWeight,
    /// A weight, in a mode that has none.
    NoWeights,
    /// More than 64 nodes.
    TooManyNodes,
    /// Neither a comma nor the end.
    NoComma,
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::UnknownMode => {
                "no policy (local, bind, preferred, interleave, weighted, firsttouch)"
            }
            Self::NoNodes => "nodes are missing, as in bind:0-3,5",
            Self::Trailing => "this policy takes no nodes",
            Self::NoNumber => "a number is missing",
            Self::NodeTooLarge => "nodes are numbered 0 to 1023",
            Self::BackwardRange => "the range ends before it begins",
            Self::NamedTwice => "the node is named twice",
            Self::BadWeight => "weights are 1 to 255",
            Self::NoWeights => "only weighted: takes weights",
            Self::TooManyNodes => "at most 64 nodes have a weight",
            Self::NoComma => "a comma or the end was expected",
        })
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "byte {}: {}", self.offset, self.reason)
    }
}

impl core::error::Error for ParseError {}

const MODES: [(&str, Mode); 6] = [
    ("local", Mode::Local),
    ("firsttouch", Mode::FirstTouch),
    ("bind", Mode::Bind),
    ("preferred", Mode::Preferred),
    ("interleave", Mode::Interleave),
    ("weighted", Mode::WeightedInterleave),
];

/// A text and how far it is read.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    const fn error(&self, reason: Reason) -> ParseError {
        ParseError { offset: self.at, reason }
    }

    fn accept(&mut self, byte: u8) -> bool {
        let is_next = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    const fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    /// A number; one that is too large for its type is as large as can be.
    fn number(&mut self) -> Result<u32, ParseError> {
        let digits = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit());
        let (count, value) = digits.fold((0, 0_u32), |(count, value), &digit| {
            (count + 1, value.saturating_mul(10).saturating_add(u32::from(digit - b'0')))
        });
        if count == 0 {
            return Err(self.error(Reason::NoNumber));
        }
        self.at += count;
        Ok(value)
    }

    fn node(&mut self) -> Result<u32, ParseError> {
        let start = self.at;
        let node = self.number()?;
        if node as usize >= KERNEL_NODES {
            return Err(ParseError { offset: start, reason: Reason::NodeTooLarge });
        }
        Ok(node)
    }

    /// The number after a `*`, or 1 where there is none.
    fn weight(&mut self) -> Result<u8, ParseError> {
        if !self.accept(b'*') {
            return Ok(1);
        }
        let start = self.at;
        let weight = u8::try_from(self.number()?).ok().filter(|&weight| weight > 0);
        weight.ok_or(ParseError { offset: start, reason: Reason::BadWeight })
    }

    /// One node or range, and its weight.
    fn part(&mut self, policy: &mut Policy) -> Result<(), ParseError> {
        let start = self.at;
        let first = self.node()?;
        let last = if self.accept(b'-') { self.node()? } else { first };
        if last < first {
            return Err(ParseError { offset: start, reason: Reason::BackwardRange });
        }
        if policy.mode != Mode::WeightedInterleave {
            if self.text.get(self.at) == Some(&b'*') {
                return Err(self.error(Reason::NoWeights));
            }
            (first..=last).for_each(|node| {
                policy.nodes.insert(node);
            });
            return Ok(());
        }
        let weight = self.weight()?;
        for node in first..=last {
            if !policy.add(node, weight) {
                let is_known = policy.nodes.contains(node);
                let reason = if is_known { Reason::NamedTwice } else { Reason::TooManyNodes };
                return Err(ParseError { offset: start, reason });
            }
        }
        Ok(())
    }

    fn nodes(&mut self, policy: &mut Policy) -> Result<(), ParseError> {
        loop {
            self.part(policy)?;
            if self.is_at_end() {
                return Ok(());
            }
            if !self.accept(b',') {
                return Err(self.error(Reason::NoComma));
            }
        }
    }
}

impl FromStr for Policy {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let name = text.split(':').next().unwrap_or_default();
        let known = MODES.iter().find(|(known, _)| *known == name);
        let unknown = ParseError { offset: 0, reason: Reason::UnknownMode };
        let &(_, mode) = known.ok_or(unknown)?;
        let mut policy = Self::of(mode, NodeMask::EMPTY);
        let mut reader = Reader { text: text.as_bytes(), at: name.len() };
        let takes_nodes = !matches!(mode, Mode::Local | Mode::FirstTouch);
        if !takes_nodes && !reader.is_at_end() {
            return Err(reader.error(Reason::Trailing));
        }
        if takes_nodes {
            if !reader.accept(b':') || reader.is_at_end() {
                return Err(reader.error(Reason::NoNodes));
            }
            reader.nodes(&mut policy)?;
        }
        Ok(policy)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = MODES.iter().find(|(_, mode)| *mode == self.mode).map_or("", |(name, _)| name);
        out.write_str(name)?;
        if self.mode != Mode::WeightedInterleave {
            let colon = if self.nodes.is_empty() { "" } else { ":" };
            return write!(out, "{colon}{}", self.nodes);
        }
        let mut before = ":";
        for (node, weight) in self.nodes.iter().zip(self.weights) {
            write!(out, "{before}{node}")?;
            if weight != 1 {
                write!(out, "*{weight}")?;
            }
            before = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::{ParseError, Policy, Reason};
    use std::string::ToString;

    fn parsed(text: &str) -> Policy {
        text.parse().unwrap_or_else(|error: ParseError| panic!("{text}: {error}"))
    }

    #[test]
    fn a_policy_is_written_as_it_is_read() {
        for text in [
            "local",
            "firsttouch",
            "bind:1",
            "preferred:0-1",
            "preferred:1,3",
            "interleave:0-3,5",
            "weighted:0*3,2",
            "weighted:7,1023*255",
        ] {
            assert_eq!(parsed(text).to_string(), text);
        }
        assert_eq!(parsed("weighted:2*1,0*3"), parsed("weighted:0*3,2"));
        assert_eq!(parsed("weighted:0-1*2"), parsed("weighted:0*2,1*2"));
        assert_eq!(parsed("bind:1,0,1"), parsed("bind:0-1"));
    }

    #[test]
    fn an_error_says_where_the_text_is_wrong() {
        for (text, offset, reason) in [
            ("", 0, Reason::UnknownMode),
            ("BIND:1", 0, Reason::UnknownMode),
            ("local:1", 5, Reason::Trailing),
            ("bind", 4, Reason::NoNodes),
            ("bind:", 5, Reason::NoNodes),
            ("bind:x", 5, Reason::NoNumber),
            ("bind:0,", 7, Reason::NoNumber),
            ("bind:0-", 7, Reason::NoNumber),
            ("bind:0 1", 6, Reason::NoComma),
            ("bind:0,1024", 7, Reason::NodeTooLarge),
            ("bind:99999999999", 5, Reason::NodeTooLarge),
            ("interleave:3-1", 11, Reason::BackwardRange),
            ("interleave:0*2", 12, Reason::NoWeights),
            ("weighted:0*0", 11, Reason::BadWeight),
            ("weighted:0*256", 11, Reason::BadWeight),
            ("weighted:0*", 11, Reason::NoNumber),
            ("weighted:0,0", 11, Reason::NamedTwice),
            ("weighted:0-64", 9, Reason::TooManyNodes),
        ] {
            assert_eq!(text.parse::<Policy>(), Err(ParseError { offset, reason }), "{text}");
        }
    }
}
