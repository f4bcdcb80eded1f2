//! The values of a canonical JSON text, each with its own piece of the text.

use std::borrow::Cow;

use super::place::{Place, quoted};
use super::text::string_end;
use super::violation::{Violation, Violations};

/// One value and the text that it was read from.
#[derive(Debug)]
pub(crate) struct Node<'a> {
    pub(crate) raw: &'a str,
    pub(crate) kind: Kind<'a>,
}

/// What a value is. A number is its text.
#[derive(Debug)]
pub(crate) enum Kind<'a> {
    Null,
    Boolean(bool),
    Number,
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
        let mut reader = Reader { text: canonical, at: 0, faults: Violations::default() };
        let node = reader.value(&Place::ROOT);
        if reader.faults.is_empty() { Ok(node) } else { Err(reader.faults) }
    }

    /// What the value is, in the words of JSON Schema.
    pub(crate) fn type_name(&self) -> &'static str {
        match &self.kind {
            Kind::Null => "null",
            Kind::Boolean(_) => "boolean",
            Kind::Number if self.raw.contains(['.', 'e', 'E']) => "number",
            Kind::Number => "integer",
            Kind::String(_) => "string",
            Kind::Array(_) => "array",
            Kind::Object(_) => "object",
        }
    }
}

/// Reads what is known to be JSON and not too deep.
struct Reader<'a> {
    text: &'a str,
    at: usize,
    faults: Violations,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(b'}')
    }

    fn value(&mut self, place: &Place<'_>) -> Node<'a> {
        let start = self.at;
        let kind = match self.peek() {
            b'{' => Kind::Object(self.object(place)),
            b'[' => Kind::Array(self.array(place)),
            b'"' => Kind::String(self.string(place)),
            first => {
                let rest = &self.text.as_bytes()[self.at..];
                self.at += rest.iter().take_while(|byte| !matches!(byte, b',' | b']' | b'}')).count();
                match first {
                    b'n' => Kind::Null,
                    b't' => Kind::Boolean(true),
                    b'f' => Kind::Boolean(false),
                    _ => Kind::Number,
                }
            }
        };
        Node { raw: &self.text[start..self.at], kind }
    }

    fn array(&mut self, place: &Place<'_>) -> Vec<Node<'a>> {
        let mut items = Vec::new();
        self.at += 1;
        while self.peek() != b']' && self.at < self.text.len() {
            items.push(self.value(&place.item(items.len())));
            self.at += usize::from(self.peek() == b',');
        }
        self.at += 1;
        items
    }

    fn object(&mut self, place: &Place<'_>) -> Members<'a> {
        let mut list: Vec<(Cow<'a, str>, Node<'a>)> = Vec::new();
        self.at += 1;
        while self.peek() == b'"' {
            let name = self.string(place);
            self.at += 1;
            let node = self.value(&place.member(&name));
            if list.len() < FEW && list.iter().any(|(other, _)| *other == name) {
                self.twice(place, &name);
            }
            list.push((name, node));
            self.at += usize::from(self.peek() == b',');
        }
        self.at += 1;
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
        self.faults.push(Violation::at(&place, format!("the key {} is given twice", quoted(name))));
    }

    fn string(&mut self, place: &Place<'_>) -> Cow<'a, str> {
        let start = self.at;
        self.at = string_end(self.text.as_bytes(), start);
        let raw = &self.text[start..self.at];
        let inner = raw.get(1..raw.len() - 1).unwrap_or_default();
        if !inner.contains('\\') {
            return Cow::Borrowed(inner);
        }
        match serde_json::from_str(raw) {
            Ok(text) => Cow::Owned(text),
            Err(_) => {
                let message = "a string has half of a surrogate pair (\\ud800 to \\udfff), which is no character";
                self.faults.push(Violation::at(place, message));
                Cow::Borrowed(inner)
            }
        }
    }
}
