//! PaddleClas configs: as the recipe of a command, PaddleClas' own ones, and their
//! pixels.

mod command;
mod configs;
mod opencv;
