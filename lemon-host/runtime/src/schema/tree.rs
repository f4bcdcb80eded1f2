//! The values of a canonical JSON text, each with its own piece of the text.

use std::borrow::Cow;

use super::number::{Long, Number, number_length};
use super::place::{Place, quoted};
use super::text::{DEPTH, string_end};
use super::violation::Violations;

/// One value and the text that it was read from.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) raw: &'a str,
    pub(crate) kind: Kind<'a>,
}

/// What a value is. A number is its text, and what is worth knowing of a long one.
#[derive(Debug)]
pub(crate) enum Kind<'a> {
    Null,
    Boolean(bool),
    Number(Option<Box<Long<'a>>>),
    String(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Members<'a>),
}

/// An object's members in the order of the text, no name twice.
#[derive(Debug)]
pub(crate) struct Members<'a> {
    list: Vec<(Cow<'a, str>, Node<'a>)>,
    /// Their numbers in the order of their names; empty when there are few.
    order: Box<[u32]>,
}

/// Up to so many members are looked through one by one.
const FEW: usize = 16;

impl<'a> Members<'a> {
    pub(crate) fn list(&self) -> &[(Cow<'a, str>, Node<'a>)] {
        &self.list
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Node<'a>> {
        if self.order.is_empty() {
            return self.list.iter().find(|(own, _)| own == name).map(|(_, node)| node);
        }
        let name_of = |number: &u32| self.list[*number as usize].0.as_ref();
        let found = self.order.binary_search_by(|number| name_of(number).cmp(name)).ok()?;
        Some(&self.list[self.order[found] as usize].1)
    }
}

impl<'a> Node<'a> {
    /// Reads a canonical text.
    ///
    /// # Errors
    /// Names that stand twice in one object, and escapes that stand for no character.
    pub(crate) fn read(canonical: &'a str) -> Result<Self, Violations> {
        let mut reader = Reader::of(canonical);
        let node = reader.value(&Place::ROOT);
        if reader.faults.is_empty() { Ok(node) } else { Err(reader.faults) }
    }

    /// Reads any text if it is JSON in canonical form as it is, not too deep and without any fault. Gives the number of
    /// its values and their depth as well.
    pub(crate) fn read_plain(text: &'a str) -> Option<(Self, usize, usize)> {
        let mut reader = Reader::of(text);
        let node = reader.value(&Place::ROOT);
        let is_plain = reader.is_plain && reader.at == text.len() && reader.faults.is_empty();
        is_plain.then_some((node, reader.values, reader.deepest))
    }

    /// The number that it is.
    pub(crate) fn number(&self) -> Option<Number<'_>> {
        match &self.kind {
            Kind::Number(long) => Some(Number { text: self.raw, long: long.as_deref() }),
            _ => None,
        }
    }

    /// What the value is, in the words of JSON Schema.
    pub(crate) fn type_name(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "null",
            Kind::Boolean(_) => "boolean",
            Kind::Number(_) if self.raw.contains(['.', 'e', 'E']) => "number",
            Kind::Number(_) => "integer",
            Kind::String(_) => "string",
            Kind::Array(_) => "array",
            Kind::Object(_) => "object",
        }
    }
}

impl Node<'_> {
    /// The bytes of the longest JSON pointer to a value within, or a bit more.
    pub(crate) fn longest_pointer(&self) -> usize {
        /// The digits of an item's number and its slash.
        const ITEM: usize = 8;
        match &self.kind {
            Kind::Array(items) => items.iter().map(|item| ITEM + item.longest_pointer()).max().unwrap_or(0),
            Kind::Object(members) => {
                // A `/` or `~` takes two bytes.
                let inner = members.list.iter().map(|(name, node)| 1 + 2 * name.len() + node.longest_pointer());
                inner.max().unwrap_or(0)
            }
            _ => 0,
        }
    }
}

/// Reads canonical JSON. Reading ends where a text is not that, or too deep.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    faults: Violations,
    is_plain: bool,
    values: usize,
    depth: usize,
    deepest: usize,
}

impl<'a> Reader<'a> {
    fn of(text: &'a str) -> Self {
        Self { text, at: 0, faults: Violations::default(), is_plain: true, values: 0, depth: 0, deepest: 0 }
    }

    /// The next byte; at the end one that begins nothing.
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or_default()
    }

    /// Ends the reading.
    #[cold]
    fn end(&mut self) {
        self.is_plain = false;
        self.at = self.text.len();
    }

    fn expect(&mut self, byte: u8) {
        if self.text.as_bytes().get(self.at) == Some(&byte) { self.at += 1 } else { self.end() }
    }

    /// Whether another part of a container follows, past the comma.
    fn goes_on(&mut self, close: u8) -> bool {
        match self.text.as_bytes().get(self.at) {
            Some(b',') => {
                self.at += 1;
                true
            }
            Some(byte) if *byte == close => {
                self.at += 1;
                false
            }
            _ => {
                self.end();
                false
            }
        }
    }

    fn value(&mut self, place: &Place<'_>) -> Node<'a> {
        let start = self.at;
        self.values += 1;
        let kind = match self.peek() {
            b'{' | b'[' if self.depth >= DEPTH => {
                self.end();
                Kind::Null
            }
            b'{' => Kind::Object(self.within(|reader| reader.object(place))),
            b'[' => Kind::Array(self.within(|reader| reader.array(place))),
            b'"' => Kind::String(self.string(place)),
            b'n' => self.word("null", Kind::Null),
            b't' => self.word("true", Kind::Boolean(true)),
            b'f' => self.word("false", Kind::Boolean(false)),
            _ => match number_length(&self.text.as_bytes()[start..]) {
                Some(length) => {
                    self.at += length;
                    Kind::Number(Long::of(&self.text[start..self.at]).map(Box::new))
                }
                None => {
                    self.end();
                    Kind::Null
                }
            },
        };
        Node { raw: &self.text[start..self.at], kind }
    }

    fn word(&mut self, word: &str, kind: Kind<'a>) -> Kind<'a> {
        if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
        } else {
            self.end();
        }
        kind
    }

    fn within<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        let done = read(self);
        self.depth -= 1;
        done
    }

    fn array(&mut self, place: &Place<'_>) -> Vec<Node<'a>> {
        let mut items = Vec::new();
        self.at += 1;
        if self.peek() == b']' {
            self.at += 1;
            return items;
        }
        loop {
            items.push(self.value(&place.item(items.len())));
            if !self.goes_on(b']') {
                return items;
            }
        }
    }

    fn object(&mut self, place: &Place<'_>) -> Members<'a> {
        let mut list: Vec<(Cow<'a, str>, Node<'a>)> = Vec::new();
        self.at += 1;
        if self.peek() == b'}' {
            self.at += 1;
            return Members { list, order: Box::default() };
        }
        loop {
            if self.peek() != b'"' {
                self.end();
                break;
            }
            let name = self.string(place);
            self.expect(b':');
            let node = self.value(&place.member(&name));
            if list.len() < FEW && list.iter().any(|(other, _)| *other == name) {
                self.twice(place, &name);
            }
            list.push((name, node));
            if !self.goes_on(b'}') {
                break;
            }
        }
        let mut order = Vec::new();
        if list.len() > FEW {
            order.extend(0..list.len() as u32);
            order.sort_by(|one, other| list[*one as usize].0.cmp(&list[*other as usize].0));
            for pair in order.windows(2) {
                let (one, other) = (&list[pair[0] as usize].0, &list[pair[1] as usize].0);
                // The first few have been compared.
                if one == other && pair[1] as usize >= FEW {
                    self.twice(place, one);
                }
            }
        }
        Members { list, order: order.into() }
    }

    fn twice(&mut self, place: &Place<'_>, name: &str) {
        let place = place.member(name);
        self.faults.add(&place, format!("the key {} is given twice", quoted(name)));
    }

    fn string(&mut self, place: &Place<'_>) -> Cow<'a, str> {
        let start = self.at;
        self.at = string_end(self.text.as_bytes(), start);
        let raw = &self.text[start..self.at];
        let inner = raw.get(1..raw.len() - 1).unwrap_or_default().as_bytes();
        // No early exit, so that many bytes are compared at once.
        let is_plain = inner.iter().fold(true, |is_plain, byte| is_plain & (*byte >= b' ') & (*byte != b'\\'));
        if is_plain && raw.len() > 1 && raw.ends_with('"') {
            return Cow::Borrowed(&self.text[start + 1..self.at - 1]);
        }
        match serde_json::from_str(raw) {
            Ok(text) => Cow::Owned(text),
            Err(_) => {
                let message = "a string has half of a surrogate pair (\\ud800 to \\udfff), which is no character";
                self.faults.add(place, message);
                Cow::Borrowed(raw.get(1..raw.len() - 1).unwrap_or_default())
            }
        }
    }
}
