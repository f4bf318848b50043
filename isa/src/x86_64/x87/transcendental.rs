//! Functions that have no exact result.
use super::Operation;
use super::unit::Unit;
impl Unit<'_> {
    pub(super) fn transcendental(&mut self, _: Operation) {}
    pub(super) fn transcendental_pair(&mut self, _: Operation) {}
    pub(super) fn transcendental_push(&mut self, _: Operation) {}
}
