//! README, ARCHITECTURE and the pages of `docs/`: what they show runs, what they link to is
//! there, and a stranger can read them.
//!
//! - `page`: a page as its blocks, links, sections and sentences;
//! - `blocks`: each `sh` block runs on demo data, but for those that say why not;
//! - `text`: no sentence is long, no link or path is broken, every rate names its run.

mod blocks;
mod page;
mod text;
