//! A stack without a lock, of things that are dead: the link to the next stands in the thing.
//!
//! | site | order | pairs with | why |
//! |---|---|---|---|
//! | D1 `first` compare-exchange | Release | D2 | publishes the link in the object, and what its user wrote |
//! | D2 `first` swap with 0 | Acquire | D1 | the whole stack is taken at once, so no link is ever stale |

use super::sync::{AtomicUsize, Ordering, order};

/// Objects by address; `link` says where an object's link to the next one stands.
#[cfg_attr(loom, derive(Default))]
#[derive(Debug)]
pub(crate) struct Stack {
    first: AtomicUsize,
}

impl Stack {
    /// An empty stack.
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self { first: AtomicUsize::new(0) }
    }

    /// Puts an object on; async-signal-safe.
    pub(crate) fn push<'a>(&self, object: usize, link: impl Fn(usize) -> &'a AtomicUsize) {
        let mut first = self.first.load(Ordering::Relaxed);
        loop {
            link(object).store(first, Ordering::Relaxed);
            match self.first.compare_exchange(first, object, order!(D1, Release), Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => first = now,
            }
        }
    }

    /// Takes all objects off, and calls `free` with each.
    pub(crate) fn take_all<'a>(
        &self,
        link: impl Fn(usize) -> &'a AtomicUsize,
        mut free: impl FnMut(usize),
    ) {
        // The sticky answer is "none": read before it is written.
        if self.first.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut object = self.first.swap(0, order!(D2, Acquire));
        while object != 0 {
            let next = link(object).load(Ordering::Relaxed);
            free(object);
            object = next;
        }
    }
}

#[cfg(all(loom, test))]
mod loom_models {
    use super::Stack;
    use crate::base::sync::AtomicUsize;
    use crate::base::sync::model::{Plain, Steps, explore, is_caught};
    use loom::sync::Arc;
    use loom::thread;

    /// Objects 1 and 2: a link each, and what their user wrote.
    #[derive(Default)]
    struct Objects {
        steps: Steps,
        stack: Stack,
        links: [AtomicUsize; 2],
        words: [Plain; 2],
    }

    impl Objects {
        fn put(&self, object: usize) {
            self.words[object - 1].count();
            self.stack.push(object, |object| &self.links[object - 1]);
            self.steps.pass();
        }

        fn take(&self) -> usize {
            let mut taken = 0;
            self.steps.pass();
            self.stack.take_all(
                |object| &self.links[object - 1],
                |object| {
                    taken += 1;
                    self.words[object - 1].count();
                },
            );
            taken
        }
    }

    fn two_free_while_one_takes() {
        let objects = Arc::new(Objects::default());
        let threads = [1, 2].map(|object| {
            let objects = objects.clone();
            thread::spawn(move || objects.put(object))
        });
        let first = objects.take();
        for thread in threads {
            thread.join().expect("a handler ends");
        }
        assert_eq!(first + objects.take(), 2);
        for word in &objects.words {
            assert_eq!(word.get(), 2);
        }
    }

    #[test]
    fn an_object_put_aside_is_taken_once() {
        explore(two_free_while_one_takes);
    }

    #[test]
    fn each_weakened_ordering_is_caught() {
        assert!(is_caught("D1", two_free_while_one_takes));
        assert!(is_caught("D2", two_free_while_one_takes));
    }
}
