//! Refuses keys that are another key but for their case: some languages take one for the other.

use crate::schema::guide::{Guide, Shape, ShapeId};
use crate::schema::place::{Place, quoted};
use crate::schema::tree::{Kind, Node};
use crate::schema::violation::Violations;

/// Looks for such keys wherever the schema declares members.
///
/// # Errors
/// All that there are.
pub(super) fn check(node: &Node<'_>, guide: &Guide) -> Result<(), Violations> {
    let mut look = Look { guide, faults: Violations::default() };
    look.at(node, Some(Guide::ROOT), &Place::ROOT);
    if look.faults.is_empty() { Ok(()) } else { Err(look.faults) }
}

struct Look<'a> {
    guide: &'a Guide,
    faults: Violations,
}

impl Look<'_> {
    fn at(&mut self, node: &Node<'_>, shape: Option<ShapeId>, place: &Place<'_>) {
        // There are no keys in it.
        if !matches!(node.kind, Kind::Array(_) | Kind::Object(_)) {
            return;
        }
        let guide = self.guide;
        let Some(shape) = shape.and_then(|shape| guide.shape(shape)).filter(|shape| !shape.is_leaf()) else { return };
        match &node.kind {
            Kind::Array(items) => {
                for (number, item) in items.iter().enumerate() {
                    self.at(item, shape.item(number), &place.item(number));
                }
            }
            Kind::Object(members) => {
                for (name, member) in members.list() {
                    let place = place.member(name);
                    let inner = shape.member(name).unwrap_or_else(|| {
                        self.undeclared(name, shape, &place);
                        shape.rest()
                    });
                    self.at(member, inner, &place);
                }
            }
            _ => {}
        }
    }

    fn undeclared(&mut self, name: &str, shape: &Shape, place: &Place<'_>) {
        if let Some(declared) = shape.alike(name) {
            let message = format!("the key {} differs from {} in case only", quoted(name), quoted(declared));
            self.faults.add(place, message);
        }
    }
}
