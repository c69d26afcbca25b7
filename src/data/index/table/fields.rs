//! One record of CSV, from its bytes: where its fields are.
//!
//! In the consumer. Its length is the caller's to bound.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq)]
enum CsvState {
    /// Before a field, or of the quote that it begins with.
    Start,
    /// In a field without quotes, or after them.
    Plain,
    /// After an opening quote.
    Quoted,
    /// After a quote that closes a field, if no second one follows.
    Closed,
}

pub(super) struct CsvFields {
    pub(super) separator: u8,
    /// The fields of a record, one after the other.
    bytes: Vec<u8>,
    /// Where each of them is.
    places: Vec<Range<usize>>,
    state: CsvState,
    /// Where the current field begins.
    start: usize,
    /// Where its quoted part ends.
    closed: usize,
    has_quotes: bool,
}

impl CsvFields {
    pub(super) fn new(separator: u8) -> Self {
        Self {
            separator,
            bytes: Vec::new(),
            places: Vec::new(),
            state: CsvState::Start,
            start: 0,
            closed: 0,
            has_quotes: false,
        }
    }

    pub(super) fn begin(&mut self) {
        self.bytes.clear();
        self.places.clear();
        self.start = 0;
        self.state = CsvState::Start;
        self.has_quotes = false;
    }

    /// Takes a byte: true where it ends the record.
    pub(super) fn push(&mut self, byte: u8) -> bool {
        let is_next_to_quote = self.bytes.len() == self.closed;
        match (self.state, byte) {
            (CsvState::Quoted, b'"') => {
                self.state = CsvState::Closed;
                self.closed = self.bytes.len();
            }
            (CsvState::Quoted, _) => self.bytes.push(byte),
            (CsvState::Closed, b'"') if is_next_to_quote => {
                self.state = CsvState::Quoted;
                self.bytes.push(byte);
            }
            (_, _) if byte == self.separator => self.end_field(),
            (_, b'\n' | b'\r') => {
                self.end_field();
                return true;
            }
            (CsvState::Start, b'"') => {
                self.bytes.truncate(self.start);
                self.state = CsvState::Quoted;
                self.has_quotes = true;
            }
            (CsvState::Start | CsvState::Closed, b' ' | b'\t') => self.bytes.push(byte),
            (_, _) => {
                self.state = CsvState::Plain;
                self.bytes.push(byte);
            }
        }
        false
    }

    fn end_field(&mut self) {
        let end = match self.state {
            CsvState::Closed => self.closed,
            _ => {
                let text = &self.bytes[self.start..];
                let after = text.len() - text.trim_ascii_end().len();
                let before = text.len() - text.trim_ascii_start().len();
                let end = self.bytes.len() - after;
                self.start = (self.start + before).min(end);
                end
            }
        };
        self.places.push(self.start..end);
        self.start = self.bytes.len();
        self.state = CsvState::Start;
    }

    /// Whether a quote is open.
    pub(super) fn is_open(&self) -> bool {
        self.state == CsvState::Quoted
    }

    /// Whether the record is a blank line.
    pub(super) fn is_blank(&self) -> bool {
        !self.has_quotes && matches!(self.places.as_slice(), [only] if only.is_empty())
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// A field; empty where the record has fewer.
    pub(super) fn get(&self, at: usize) -> &[u8] {
        let place = self.places.get(at).cloned();
        let field = place.and_then(|place| self.bytes.get(place));
        field.unwrap_or_default()
    }
}
