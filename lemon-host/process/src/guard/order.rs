//! What the host tells the guard, one line each.

use std::fmt;
use std::time::Duration;

use crate::sweep::{Leader, Mark};
use crate::{Cookie, Grace};

#[derive(Debug)]
pub(super) enum Order {
    /// A process with this cookie is about to be started.
    Expect(Cookie),
    /// It was, and this is it.
    Add(Mark, Grace),
    /// It was ended, or not started after all.
    Forget(Cookie),
}

impl Order {
    pub(super) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let verb = words.next()?;
        let cookie = |words: &mut std::str::SplitAsciiWhitespace<'_>| Cookie::parse(words.next()?);
        match verb {
            "expect" => Some(Self::Expect(cookie(&mut words)?)),
            "forget" => Some(Self::Forget(cookie(&mut words)?)),
            "add" => {
                let pid = words.next()?.parse().ok()?;
                let start = words.next()?.parse().ok()?;
                let cookie = cookie(&mut words)?;
                let mut millis = || Some(Duration::from_millis(words.next()?.parse().ok()?));
                let grace = Grace { eof: millis()?, term: millis()? };
                let leader = Some(Leader { pid, start });
                Some(Self::Add(Mark { cookie, leader }, grace))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forget(cookie) => writeln!(f, "forget {}", cookie.as_str()),
            Self::Expect(cookie) => writeln!(f, "expect {}", cookie.as_str()),
            Self::Add(Mark { cookie, leader: None }, _) => writeln!(f, "expect {}", cookie.as_str()),
            Self::Add(Mark { cookie, leader: Some(Leader { pid, start }) }, grace) => {
                let (eof, term) = (grace.eof.as_millis(), grace.term.as_millis());
                writeln!(f, "add {pid} {start} {} {eof} {term}", cookie.as_str())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_survive_the_pipe() {
        let cookie = Cookie::new();
        let leader = Some(Leader { pid: 7, start: 8 });
        let mark = |leader| Mark { cookie: cookie.clone(), leader };
        for order in
            [Order::Expect(cookie.clone()), Order::Add(mark(leader), Grace::default()), Order::Forget(cookie.clone())]
        {
            let line = order.to_string();
            let back = Order::parse(line.trim_end_matches('\n')).unwrap();
            assert_eq!(back.to_string(), line);
        }
        assert_eq!(Order::Add(mark(None), Grace::default()).to_string(), Order::Expect(cookie).to_string());
    }

    #[test]
    fn half_an_order_is_none() {
        for line in ["", "add", "add 1 2", "expect", "expect x", "forget", "dance 1"] {
            assert!(Order::parse(line).is_none(), "{line}");
        }
    }
}
