//! Parses the subset of Python's pickle format that CIFAR batches use: a dictionary, lists,
//! numbers, texts and a NumPy array. Nothing is executed.
//!
//! Reads untrusted bytes. Texts are not copied: they are ranges of the file. Each opcode makes at
//! most one value, and the number of opcodes is limited. Any other opcode or name is an error that
//! names it. Not in this file: the meaning of the keys of a batch.
//!
//! Reads protocols 2 to 5. Python 2 wrote the published archives with protocol 2. Python 3 writes
//! bytes in protocol 2 as text, which `_codecs.encode` converts back.

use std::collections::HashMap;
use std::ops::Range;

type PickleResult<T> = Result<T, String>;

/// A value, by its position in `PickleDocument::values`.
pub(super) type ValueId = u32;

/// A value in a pickle.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PickleValue {
    None,
    Number(i64),
    Bytes(PickleBytes),
    Tuple(Vec<ValueId>),
    List(Vec<ValueId>),
    Dictionary(Vec<(ValueId, ValueId)>),
    /// An array. `None` until its contents have been read.
    Array(Option<PickleArray>),
    /// Whether the data type is `u1`, bytes.
    Dtype(bool),
    Named(PickleGlobal),
}

/// Bytes or text, as a range of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PickleBytes {
    pub(super) at: Range<usize>,
    /// Whether it is UTF-8 text in which each character is a byte.
    pub(super) is_text: bool,
}

/// An array of bytes in C order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PickleArray {
    /// Rows, and bytes per row.
    pub(super) shape: [u64; 2],
    pub(super) data: PickleBytes,
}

/// Maximum number of opcodes. A batch of 50,000 images has a tenth of it. Each opcode takes up to
/// 100 bytes of memory.
const MOST_WORDS: u32 = 1 << 21;

/// Maximum number of values read from the tuple of a call: one more than any call has.
const MOST_GIVEN: usize = 6;

/// The names that a pickle may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PickleGlobal {
    Reconstruct,
    FromBuffer,
    Array,
    Dtype,
    Encode,
}

impl PickleGlobal {
    fn of(module: &[u8], name: &[u8]) -> Option<Self> {
        Some(match (module, name) {
            (b"numpy.core.multiarray" | b"numpy._core.multiarray", b"_reconstruct") => {
                Self::Reconstruct
            }
            (b"numpy.core.numeric" | b"numpy._core.numeric", b"_frombuffer") => Self::FromBuffer,
            (b"numpy", b"ndarray") => Self::Array,
            (b"numpy", b"dtype") => Self::Dtype,
            (b"_codecs", b"encode") => Self::Encode,
            _ => return None,
        })
    }
}

/// A parsed pickle.
#[derive(Debug)]
pub(super) struct PickleDocument {
    values: Vec<PickleValue>,
    top: ValueId,
}

impl PickleDocument {
    /// # Errors
    /// A fragment to put after the name of the file. The file is not a pickle of a CIFAR batch.
    pub(super) fn read(file: &[u8]) -> PickleResult<Self> {
        PickleReader {
            file,
            at: 0,
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
        }
        .read()
    }

    pub(super) fn top(&self) -> &PickleValue {
        self.get(self.top)
    }

    pub(super) fn get(&self, id: ValueId) -> &PickleValue {
        self.values.get(id as usize).unwrap_or(&PickleValue::None)
    }
}

struct PickleReader<'a> {
    file: &'a [u8],
    at: usize,
    values: Vec<PickleValue>,
    stack: Vec<ValueId>,
    /// Height of the stack at each mark.
    marks: Vec<usize>,
    memo: HashMap<u32, ValueId>,
}

fn cut() -> String {
    "ends within a pickle".into()
}

fn broken() -> String {
    "is damaged: its pickle does not fit together".into()
}

impl PickleReader<'_> {
    fn read(mut self) -> PickleResult<PickleDocument> {
        for _ in 0..MOST_WORDS {
            let word = self.byte()?;
            match word {
                b'.' => {
                    let top = self.pop()?;
                    let values = self.values;
                    return Ok(PickleDocument { values, top });
                }
                // A protocol. Then a frame: its length is skipped, because its opcodes follow.
                0x80 => match self.byte()? {
                    2..=5 => {}
                    other => {
                        return Err(format!("is a pickle of protocol {other}: 2 to 5 are read"));
                    }
                },
                0x95 => {
                    self.take(8)?;
                }
                b'q' => {
                    let key = self.byte()?.into();
                    self.put(key)?;
                }
                b'r' => {
                    let key = self.length::<4>()? as u32;
                    self.put(key)?;
                }
                0x94 => self.put(self.memo.len() as u32)?,
                b'h' => {
                    let key = self.byte()?.into();
                    self.recall(key)?;
                }
                b'j' => {
                    let key = self.length::<4>()? as u32;
                    self.recall(key)?;
                }
                b'(' => self.marks.push(self.stack.len()),
                b'U' | b'C' => self.bytes::<1>(false)?,
                b'T' | b'B' => self.bytes::<4>(false)?,
                0x8e | 0x96 => self.bytes::<8>(false)?,
                0x8c => self.bytes::<1>(true)?,
                b'X' => self.bytes::<4>(true)?,
                0x8d => self.bytes::<8>(true)?,
                b'N' => self.push(PickleValue::None)?,
                0x88 => self.push(PickleValue::Number(1))?,
                0x89 => self.push(PickleValue::Number(0))?,
                b'K' => {
                    let number = self.byte()?.into();
                    self.push(PickleValue::Number(number))?;
                }
                b'M' => {
                    let number = self.length::<2>()? as i64;
                    self.push(PickleValue::Number(number))?;
                }
                b'J' => {
                    let number = self.length::<4>()? as u32 as i32;
                    self.push(PickleValue::Number(number.into()))?;
                }
                b'}' => self.push(PickleValue::Dictionary(Vec::new()))?,
                b']' => self.push(PickleValue::List(Vec::new()))?,
                b')' => self.push(PickleValue::Tuple(Vec::new()))?,
                0x85..=0x87 => {
                    let from = self.stack.len().checked_sub(usize::from(word - 0x84));
                    let items = self.stack.split_off(from.ok_or_else(broken)?);
                    self.push(PickleValue::Tuple(items))?;
                }
                b't' => {
                    let items = self.marked()?;
                    self.push(PickleValue::Tuple(items))?;
                }
                b's' => {
                    let value = self.pop()?;
                    let key = self.pop()?;
                    self.entries(vec![key, value])?;
                }
                b'u' => {
                    let items = self.marked()?;
                    self.entries(items)?;
                }
                b'a' => {
                    let item = self.pop()?;
                    self.append(vec![item])?;
                }
                b'e' => {
                    let items = self.marked()?;
                    self.append(items)?;
                }
                b'c' => {
                    let module = self.line()?;
                    let name = self.line()?;
                    self.name(module, name)?;
                }
                0x93 => {
                    let name = self.pop()?;
                    let module = self.pop()?;
                    let range = |id| match self.value(id) {
                        Some(PickleValue::Bytes(packed)) => Ok(packed.at.clone()),
                        _ => Err(broken()),
                    };
                    let (module, name) = (range(module)?, range(name)?);
                    self.name(module, name)?;
                }
                b'R' => self.reduce()?,
                b'b' => self.build()?,
                other => {
                    return Err(format!(
                        "has the pickle opcode {other:#04x}, which no CIFAR batch uses"
                    ));
                }
            }
        }
        Err(format!(
            "has more than {MOST_WORDS} pickle opcodes, which no CIFAR batch has"
        ))
    }

    fn take(&mut self, bytes: usize) -> PickleResult<Range<usize>> {
        let end = self
            .at
            .checked_add(bytes)
            .filter(|end| *end <= self.file.len());
        let range = self.at..end.ok_or_else(cut)?;
        self.at = range.end;
        Ok(range)
    }

    fn byte(&mut self) -> PickleResult<u8> {
        let range = self.take(1)?;
        self.file.get(range.start).copied().ok_or_else(cut)
    }

    /// A little-endian number of `N` bytes.
    fn length<const N: usize>(&mut self) -> PickleResult<u64> {
        let range = self.take(N)?;
        let bytes = self.file.get(range).ok_or_else(cut)?;
        Ok(bytes
            .iter()
            .rev()
            .fold(0, |sum, b| (sum << 8) | u64::from(*b)))
    }

    fn line(&mut self) -> PickleResult<Range<usize>> {
        let rest = self.file.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|b| *b == b'\n').ok_or_else(cut)?;
        let range = self.take(length + 1)?;
        Ok(range.start..range.end - 1)
    }

    fn bytes<const N: usize>(&mut self, is_text: bool) -> PickleResult<()> {
        let length = usize::try_from(self.length::<N>()?).map_err(|_| cut())?;
        let at = self.take(length)?;
        self.push(PickleValue::Bytes(PickleBytes { at, is_text }))
    }

    fn push(&mut self, value: PickleValue) -> PickleResult<()> {
        let id = ValueId::try_from(self.values.len()).map_err(|_| broken())?;
        self.values.push(value);
        self.stack.push(id);
        Ok(())
    }

    fn pop(&mut self) -> PickleResult<ValueId> {
        let below = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= below {
            return Err(broken());
        }
        self.stack.pop().ok_or_else(broken)
    }

    /// Removes the last mark, and returns the values above it.
    fn marked(&mut self) -> PickleResult<Vec<ValueId>> {
        let below = self.marks.pop().ok_or_else(broken)?;
        if below > self.stack.len() {
            return Err(broken());
        }
        Ok(self.stack.split_off(below))
    }

    fn value(&self, id: ValueId) -> Option<&PickleValue> {
        self.values.get(id as usize)
    }

    fn last(&mut self) -> PickleResult<&mut PickleValue> {
        let id = self.stack.last().copied().ok_or_else(broken)?;
        self.values.get_mut(id as usize).ok_or_else(broken)
    }

    fn put(&mut self, key: u32) -> PickleResult<()> {
        let id = self.stack.last().copied().ok_or_else(broken)?;
        self.memo.insert(key, id);
        Ok(())
    }

    fn recall(&mut self, key: u32) -> PickleResult<()> {
        let id = self.memo.get(&key).copied().ok_or_else(broken)?;
        self.stack.push(id);
        Ok(())
    }

    fn entries(&mut self, items: Vec<ValueId>) -> PickleResult<()> {
        let PickleValue::Dictionary(entries) = self.last()? else {
            return Err(broken());
        };
        let (pairs, []) = items.as_chunks::<2>() else {
            return Err(broken());
        };
        entries.extend(pairs.iter().map(|[key, value]| (*key, *value)));
        Ok(())
    }

    fn append(&mut self, items: Vec<ValueId>) -> PickleResult<()> {
        let PickleValue::List(list) = self.last()? else {
            return Err(broken());
        };
        list.extend(items);
        Ok(())
    }

    fn name(&mut self, module: Range<usize>, name: Range<usize>) -> PickleResult<()> {
        let text = |range| self.file.get(range).unwrap_or_default();
        let (module, name) = (text(module), text(name));
        let named = PickleGlobal::of(module, name).ok_or_else(|| {
            let short = |text: &[u8]| text[..text.len().min(60)].escape_ascii().to_string();
            format!(
                "calls {}.{}, which no CIFAR batch does: pickles are never executed",
                short(module),
                short(name)
            )
        })?;
        self.push(PickleValue::Named(named))
    }

    fn reduce(&mut self) -> PickleResult<()> {
        let (given, function) = (self.pop()?, self.pop()?);
        let (Some(PickleValue::Named(named)), Some(PickleValue::Tuple(given))) =
            (self.value(function), self.value(given))
        else {
            return Err(broken());
        };
        let given = given.iter().take(MOST_GIVEN);
        let given: Vec<_> = given.map(|id| self.value(*id)).collect();
        let made = match (named, given.as_slice()) {
            (PickleGlobal::Reconstruct, [Some(PickleValue::Named(PickleGlobal::Array)), ..]) => {
                PickleValue::Array(None)
            }
            (PickleGlobal::Dtype, [Some(PickleValue::Bytes(name)), ..]) => {
                PickleValue::Dtype(self.file.get(name.at.clone()) == Some(b"u1".as_slice()))
            }
            // Its bytes are the characters of the text.
            (
                PickleGlobal::Encode,
                [Some(PickleValue::Bytes(text)), Some(PickleValue::Bytes(by))],
            ) if text.is_text && self.file.get(by.at.clone()) == Some(b"latin1".as_slice()) => {
                PickleValue::Bytes(text.clone())
            }
            (PickleGlobal::FromBuffer, [Some(data), Some(dtype), Some(shape), Some(order)]) => {
                let is_c = matches!(order, PickleValue::Bytes(order)
                    if self.file.get(order.at.clone()) == Some(b"C".as_slice()));
                PickleValue::Array(Some(self.array(shape, dtype, is_c, data)?))
            }
            _ => return Err(broken()),
        };
        self.push(made)
    }

    fn build(&mut self) -> PickleResult<()> {
        let state = self.pop()?;
        let made = match (
            self.stack.last().and_then(|id| self.value(*id)),
            self.value(state),
        ) {
            // The state holds the byte order. Bytes have no order, so it is ignored.
            (Some(PickleValue::Dtype(_)), Some(PickleValue::Tuple(_))) => return Ok(()),
            (Some(PickleValue::Array(None)), Some(PickleValue::Tuple(state))) => {
                let state = state.iter().take(MOST_GIVEN);
                let state: Vec<_> = state.map(|id| self.value(*id)).collect();
                let [_, Some(shape), Some(dtype), Some(order), Some(data)] = state.as_slice()
                else {
                    return Err(broken());
                };
                self.array(shape, dtype, **order == PickleValue::Number(0), data)?
            }
            _ => return Err(broken()),
        };
        *self.last()? = PickleValue::Array(Some(made));
        Ok(())
    }

    fn array(
        &self,
        shape: &PickleValue,
        dtype: &PickleValue,
        is_c: bool,
        data: &PickleValue,
    ) -> PickleResult<PickleArray> {
        let (PickleValue::Tuple(shape), PickleValue::Bytes(data)) = (shape, data) else {
            return Err(broken());
        };
        let side = |id: &ValueId| match self.value(*id) {
            Some(PickleValue::Number(side)) => u64::try_from(*side).map_err(|_| broken()),
            _ => Err(broken()),
        };
        let [rows, columns] = shape.as_slice() else {
            return Err(format!(
                "has an array of {} dimensions, but a CIFAR batch has 2",
                shape.len()
            ));
        };
        let shape = [side(rows)?, side(columns)?];
        if *dtype != PickleValue::Dtype(true) || !is_c {
            return Err("has an array that is not of uint8 in C order".into());
        }
        Ok(PickleArray {
            shape,
            data: data.clone(),
        })
    }
}
