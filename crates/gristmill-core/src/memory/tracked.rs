//! A map that can remember which of its entries were touched, so that a store
//! that keeps its tasks elsewhere writes down those and no others.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Deref;

/// Reading goes to the map itself. Whatever may change an entry passes through
/// a method here, so that no change can be forgotten.
#[derive(Debug)]
pub(super) struct Tracked<K, V> {
    map: BTreeMap<K, V>,
    touched: Option<Vec<K>>,
}

impl<K, V> Default for Tracked<K, V> {
    fn default() -> Self {
        Tracked { map: BTreeMap::new(), touched: None }
    }
}

impl<K, V> Deref for Tracked<K, V> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &Self::Target {
        &self.map
    }
}

impl<K: Ord + Clone, V> Tracked<K, V> {
    /// Remembers from now on.
    pub(super) fn track(&mut self) {
        self.touched.get_or_insert_with(Vec::new);
    }

    /// The keys touched since the last call, each once, in order.
    pub(super) fn take_touched(&mut self) -> Vec<K> {
        let mut touched = self.touched.as_mut().map(std::mem::take).unwrap_or_default();
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    fn touch(&mut self, key: &K) {
        if let Some(touched) = &mut self.touched
            && touched.last() != Some(key)
        {
            touched.push(key.clone());
        }
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        if self.touched.is_some() && self.map.contains_key(key) {
            self.touch(key);
        }
        self.map.get_mut(key)
    }

    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.touch(&key);
        self.map.insert(key, value)
    }

    pub(super) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (key, value) = self.map.remove_entry(key)?;
        self.touch(&key);
        Some(value)
    }

    /// An entry to change in something that is not written down: what follows
    /// from the time, or from other entries.
    pub(super) fn derived_mut(&mut self, key: &K) -> Option<&mut V> {
        self.map.get_mut(key)
    }

    /// As [`Tracked::derived_mut`], all of them.
    pub(super) fn all_derived_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.map.values_mut()
    }
}
