//! Rows of one kind, with what they were before the batch.

use std::collections::BTreeMap;

/// A row with its state before the batch.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Tracked<R> {
    current: Option<R>,
    /// The stored state once the row has changed: `Some(None)` for a row that is new.
    before: Option<Option<R>>,
}

/// Rows of one kind by key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Table<K: Ord, R>(BTreeMap<K, Tracked<R>>);

/// A row to write: insert it when there was none before, else update it where it still is as it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change<'a, K, R> {
    /// Its key.
    pub key: &'a K,
    /// As it was stored.
    pub before: Option<&'a R>,
    /// As it is to be.
    pub after: &'a R,
}

impl<K: Ord, R> Default for Table<K, R> {
    fn default() -> Self {
        Table(BTreeMap::new())
    }
}

impl<K: Ord + Clone, R: Clone + PartialEq> Table<K, R> {
    /// The row as it is now.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&R>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.0.get(key)?.current.as_ref()
    }

    /// Adds a stored row; one that is here already stays as the decisions have left it.
    pub fn load(&mut self, key: K, row: R) {
        self.0.entry(key).or_insert(Tracked { current: Some(row), before: None });
    }

    /// Adds a row that wasn't stored before.
    pub(crate) fn insert(&mut self, key: K, row: R) {
        self.0.insert(key, Tracked { current: Some(row), before: Some(None) });
    }

    /// The rows of a range of keys, in the keys' order.
    pub(crate) fn range(&self, keys: impl std::ops::RangeBounds<K>) -> impl Iterator<Item = &R> {
        self.0.range(keys).filter_map(|(_, row)| row.current.as_ref())
    }

    /// The row, to be changed. It must be here: decisions look before they change.
    pub(crate) fn change<Q: Ord + ?Sized>(&mut self, key: &Q) -> &mut R
    where
        K: std::borrow::Borrow<Q>,
    {
        let row = self.0.get_mut(key).expect("a row that is changed has been loaded");
        if row.before.is_none() {
            row.before = Some(row.current.clone());
        }
        row.current.as_mut().expect("a row that is changed exists")
    }

    /// The rows that differ from what was loaded.
    pub fn changes(&self) -> impl Iterator<Item = Change<'_, K, R>> {
        let changes = self.0.iter().filter_map(|(key, row)| {
            Some(Change { key, before: row.before.as_ref()?.as_ref(), after: row.current.as_ref()? })
        });
        changes.filter(|change| change.before != Some(change.after))
    }
}
