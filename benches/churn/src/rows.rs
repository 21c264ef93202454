//! The rows: what each does, and how many operations it counts.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::hint::black_box;

/// Objects, keys or elements alive at once.
const LIVE: usize = 1000;

/// State that a row keeps from chunk to chunk.
#[derive(Default)]
pub struct Churn {
    random: u64,
    boxes: Vec<Option<Shape>>,
    map: HashMap<u64, Box<[u64; 4]>, BuildHasherDefault<Multiply>>,
    tree: BTreeMap<u64, Box<[u64; 4]>>,
}

/// Boxes of four sizes, each known where it is made.
enum Shape {
    Word(Box<u64>),
    Node(Box<[u64; 4]>),
    Record(Box<[u64; 12]>),
    Block(Box<[u64; 64]>),
}

/// A row: does so many operations.
pub type Run = fn(&mut Churn, usize);

/// The rows by name.
pub const ROWS: [(&str, Run); 5] = [
    ("Box", Churn::replace_boxes),
    ("Vec", Churn::push_to_vecs),
    ("String", Churn::build_strings),
    ("HashMap", Churn::change_map),
    ("BTreeMap", Churn::change_tree),
];

impl Churn {
    fn next(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.random >> 33
    }

    /// A random one of `LIVE` boxes is replaced by one of another size.
    fn replace_boxes(&mut self, operations: usize) {
        self.boxes.resize_with(LIVE, || None);
        for _ in 0..operations {
            let random = self.next();
            let shape = match random & 3 {
                0 => Shape::Word(Box::new(random)),
                1 => Shape::Node(Box::new([random; 4])),
                2 => Shape::Record(Box::new([random; 12])),
                _ => Shape::Block(Box::new([random; 64])),
            };
            self.boxes[(random >> 2) as usize % LIVE] = Some(shape);
        }
        for shape in self.boxes.iter().flatten().take(1) {
            black_box(match shape {
                Shape::Word(word) => **word,
                Shape::Node(words) => words[0],
                Shape::Record(words) => words[0],
                Shape::Block(words) => words[0],
            });
        }
    }

    /// Vectors that grow by pushes to at most 127 elements; an operation is a push.
    fn push_to_vecs(&mut self, operations: usize) {
        let mut pushed = 0;
        while pushed < operations {
            let length = 1 + self.next() as usize % 127;
            let mut vec = Vec::new();
            for element in 0..length {
                vec.push(black_box(element));
            }
            black_box(vec.as_slice());
            pushed += length;
        }
    }

    /// Strings joined of parts of at most 31 bytes; an operation is a string.
    fn build_strings(&mut self, operations: usize) {
        const TEXT: &str = "every byte has a home node, so it";
        for _ in 0..operations {
            let random = self.next() as usize;
            let mut text = String::from(&TEXT[..1 + random % 31]);
            text.push_str(&TEXT[..1 + (random >> 5) % 31]);
            text.push('-');
            text.push_str(black_box(&text.clone()));
            black_box(text.as_str());
        }
    }

    /// A random key goes, another comes.
    fn change_map(&mut self, operations: usize) {
        for _ in 0..operations {
            let key = self.next() % (2 * LIVE as u64);
            if self.map.remove(&key).is_none() {
                self.map.insert(key, Box::new([key; 4]));
            }
        }
    }

    /// The same in a tree, which also allocates nodes.
    fn change_tree(&mut self, operations: usize) {
        for _ in 0..operations {
            let key = self.next() % (2 * LIVE as u64);
            if self.tree.remove(&key).is_none() {
                self.tree.insert(key, Box::new([key; 4]));
            }
        }
    }
}

/// A hash of one multiplication: the default one takes longer than an allocation.
#[derive(Default)]
struct Multiply(u64);

impl Hasher for Multiply {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
