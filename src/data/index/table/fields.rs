//! Splits the bytes of one CSV record into fields.
//!
//! Runs in the consumer. The caller limits the length of a record.

use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq)]
enum CsvState {
    /// Before a field, or before the quote that it begins with.
    Start,
    /// In a field without quotes, or after the quotes of a field.
    Plain,
    /// After an opening quote.
    Quoted,
    /// After a quote that closes the field, unless a second quote follows.
    Closed,
}

pub(super) struct CsvFields {
    pub(super) separator: u8,
    /// The fields of a record, one after the other.
    bytes: Vec<u8>,
    /// The range of each field in `bytes`.
    places: Vec<Range<usize>>,
    state: CsvState,
    /// The start of the current field.
    start: usize,
    /// The end of its quoted part.
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

    /// Adds a byte. Returns true if it ends the record.
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

    /// A field. Empty if the record has fewer fields.
    pub(super) fn get(&self, at: usize) -> &[u8] {
        let place = self.places.get(at).cloned();
        let field = place.and_then(|place| self.bytes.get(place));
        field.unwrap_or_default()
    }
}
