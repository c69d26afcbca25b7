//! A page of Markdown, as far as these tests look at it.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A fenced block of code.
pub struct Block {
    pub line: usize,
    /// What stands behind the fence, such as `sh` or `rust,no_run`.
    pub info: String,
    pub code: String,
}

/// Something on a line.
pub struct At<T> {
    pub line: usize,
    pub what: T,
}

/// A page, taken apart. Lines count from 1.
pub struct Page {
    /// From the repository's root.
    pub path: PathBuf,
    pub blocks: Vec<Block>,
    /// Sentences of running text and of lists: code is one word, tables are left out.
    pub sentences: Vec<At<String>>,
    /// Where links and pictures lead.
    pub links: Vec<At<String>>,
    /// Code within text and tables.
    pub spans: Vec<At<String>>,
    /// Headings as the hash part of a link names them.
    pub anchors: Vec<String>,
    /// From one heading to the next, without blocks of code.
    pub sections: Vec<At<String>>,
}

/// Text that is being collected, and where its pieces stand in the page.
#[derive(Default)]
struct Prose {
    text: String,
    pieces: Vec<(usize, usize)>,
}

impl Prose {
    fn push(&mut self, text: &str, at: usize) {
        self.pieces.push((self.text.len(), at));
        self.text.push_str(text);
    }

    /// Where the byte `i` of the text stands in the page.
    fn source(&self, i: usize) -> usize {
        let piece = self.pieces.partition_point(|&(start, _)| start <= i);
        self.pieces[..piece]
            .last()
            .map_or(0, |&(start, at)| at + (i - start))
    }

    /// The ranges of the sentences.
    fn sentences(&self) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut start = 0;
        let mut before = ' ';
        for (i, c) in self.text.char_indices() {
            if c.is_whitespace() && matches!(before, '.' | '!' | '?') {
                found.push(start..i);
                start = i + c.len_utf8();
            }
            // A closing bracket or quote behind the mark belongs to the sentence.
            if !matches!(c, ')' | '"' | '\'') {
                before = c;
            }
        }
        found.push(start..self.text.len());
        found
    }
}

impl Page {
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let mut page = Self {
            path: path.to_owned(),
            blocks: Vec::new(),
            sentences: Vec::new(),
            links: Vec::new(),
            spans: Vec::new(),
            anchors: Vec::new(),
            sections: Vec::new(),
        };
        page.parse(&text);
        page
    }

    fn parse(&mut self, text: &str) {
        let line = |at: usize| text[..at].matches('\n').count() + 1;
        let mut prose = Prose::default();
        let (mut in_table, mut block, mut heading) = (false, None::<Block>, None::<String>);
        // Behind the last heading or block, up to which the section has been collected.
        let mut section = (0, String::new(), 0);
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::CodeBlock(kind)) => {
                    section.1.push_str(&text[section.2..range.start]);
                    section.2 = range.end;
                    let info = match kind {
                        CodeBlockKind::Fenced(info) => info.to_string(),
                        CodeBlockKind::Indented => String::new(),
                    };
                    block = Some(Block {
                        line: line(range.start),
                        info,
                        code: String::new(),
                    });
                }
                Event::End(TagEnd::CodeBlock) => self.blocks.extend(block.take()),
                Event::Start(Tag::Table(_)) => in_table = true,
                Event::End(TagEnd::Table) => in_table = false,
                Event::Start(Tag::Heading { .. }) => {
                    section.1.push_str(&text[section.2..range.start]);
                    let what = std::mem::take(&mut section.1);
                    self.sections.push(At {
                        line: line(section.0),
                        what,
                    });
                    section = (range.start, String::new(), range.start);
                    heading = Some(String::new());
                }
                Event::End(TagEnd::Heading(_)) => {
                    self.anchors
                        .extend(heading.take().map(|words| anchor(&words)));
                    self.end_of_prose(&mut prose, &line);
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let what = dest_url.to_string();
                    self.links.push(At {
                        line: line(range.start),
                        what,
                    });
                }
                // A list within an item ends the item's own words.
                Event::Start(Tag::List(_) | Tag::Item)
                | Event::End(TagEnd::Paragraph | TagEnd::Item) => {
                    self.end_of_prose(&mut prose, &line);
                }
                Event::Text(words) => match (&mut block, in_table) {
                    (Some(block), _) => block.code.push_str(&words),
                    (None, true) => {}
                    (None, false) => {
                        prose.push(&words, range.start);
                        heading.iter_mut().for_each(|h| h.push_str(&words));
                    }
                },
                Event::Code(words) => {
                    self.spans.push(At {
                        line: line(range.start),
                        what: words.to_string(),
                    });
                    heading.iter_mut().for_each(|h| h.push_str(&words));
                    if !in_table {
                        prose.push("code", range.start);
                    }
                }
                Event::SoftBreak | Event::HardBreak if !in_table => prose.push(" ", range.start),
                _ => {}
            }
        }
        section.1.push_str(&text[section.2..]);
        self.sections.push(At {
            line: line(section.0),
            what: section.1,
        });
    }

    fn end_of_prose(&mut self, prose: &mut Prose, line: &dyn Fn(usize) -> usize) {
        let prose = std::mem::take(prose);
        for range in prose.sentences() {
            let sentence = &prose.text[range.clone()];
            let blanks = sentence.len() - sentence.trim_start().len();
            if !sentence.trim().is_empty() {
                self.sentences.push(At {
                    line: line(prose.source(range.start + blanks)),
                    what: sentence.trim().to_owned(),
                });
            }
        }
    }
}

/// A heading as links name it.
fn anchor(heading: &str) -> String {
    heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| match c {
            ' ' => '-',
            c => c.to_ascii_lowercase(),
        })
        .collect()
}

/// README, ARCHITECTURE and the pages of `docs/`, those of its folders too.
pub fn pages() -> Vec<Page> {
    let mut paths = vec![PathBuf::from("README.md"), PathBuf::from("ARCHITECTURE.md")];
    for folder in [
        "docs",
        "docs/add",
        "docs/design",
        "docs/python",
        "docs/quickstart",
    ] {
        let entries = fs::read_dir(folder).unwrap();
        let mut found: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
        found.retain(|path| path.extension().is_some_and(|e| e == "md"));
        found.sort();
        paths.extend(found);
    }
    paths.iter().map(|path| Page::read(path)).collect()
}

#[test]
fn a_page_is_taken_apart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("page.md");
    let text = "# What `x` is\n\nOne two. Three\n`four` five? Six [seven](a.md#b).\n\n\
        - an item\n  - another\n\n| a | b. c |\n|---|---|\n| 1 images/s | `d` |\n\n\
        ```sh no-test (why)\nrun it\n```\n\n## End\n\nOf 2.5 (it.) All.\n";
    fs::write(&path, text).unwrap();
    let page = Page::read(&path);
    let sentences: Vec<_> = page
        .sentences
        .iter()
        .map(|s| (s.line, s.what.as_str()))
        .collect();
    assert_eq!(
        sentences,
        [
            (1, "What code is"),
            (3, "One two."),
            (3, "Three code five?"),
            (4, "Six seven."),
            (6, "an item"),
            (7, "another"),
            (17, "End"),
            (19, "Of 2.5 (it.)"),
            (19, "All."),
        ]
    );
    assert_eq!(page.anchors, ["what-x-is", "end"]);
    assert_eq!(
        (page.links[0].line, page.links[0].what.as_str()),
        (4, "a.md#b")
    );
    let spans: Vec<_> = page
        .spans
        .iter()
        .map(|s| (s.line, s.what.as_str()))
        .collect();
    assert_eq!(spans, [(1, "x"), (4, "four"), (11, "d")]);
    let block = &page.blocks[0];
    assert_eq!((block.line, block.info.as_str()), (13, "sh no-test (why)"));
    assert_eq!(block.code, "run it\n");
    let sections: Vec<_> = page.sections.iter().map(|s| s.line).collect();
    assert_eq!(sections, [1, 1, 17]);
    assert!(page.sections[1].what.contains("images/s"));
    assert!(!page.sections[1].what.contains("run it"));
}
