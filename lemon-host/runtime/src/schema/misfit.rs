//! Where a value does not fit, found without the validator: for values with which it would find too much.

use super::guide::{Guide, ShapeId};
use super::place::Place;
use super::tree::{Kind, Node};
use super::violation::{Violation, Violations};

/// The first place with a value of a wrong type; if there is none, that it does not fit.
pub(super) fn misfit(node: &Node<'_>, guide: &Guide) -> Violations {
    let found = first(node, Some(Guide::ROOT), guide, &Place::ROOT);
    found.unwrap_or_else(|| Violation::at(&Place::ROOT, "they do not fit, and hold too much to say where")).into()
}

fn first(node: &Node<'_>, shape: Option<ShapeId>, guide: &Guide, place: &Place<'_>) -> Option<Violation> {
    let shape = guide.shape(shape?)?;
    if let Some(types) = &shape.types
        && !types.iter().any(|kind| kind.fits(node))
    {
        let expected: Vec<_> = types.iter().map(|kind| kind.name()).collect();
        let expected = if expected.is_empty() { "nothing" } else { &expected.join(" or ") };
        return Some(Violation::at(place, format!("expected {expected}, got {}", node.type_name())));
    }
    match &node.kind {
        Kind::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(number, item)| first(item, shape.item(number), guide, &place.item(number)))
        }
        Kind::Object(members) => members
            .list()
            .iter()
            .find_map(|(name, member)| first(member, shape.inner(name), guide, &place.member(name))),
        _ => None,
    }
}
