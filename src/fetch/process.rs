//! The fetcher's life: shake hands, manifest and index, then shards as ranks need them.
//!
//! In the fetcher. One thread that waits for network, consumer and clock at once; the resolver
//! of names has another. Ends when its consumer does. Nothing is logged: the consumer is told.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::{Duration, SystemTime};

use futures_util::future::{Either, select};
use nix::sys::statvfs::statvfs;
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::data::index::Index;
use crate::data::shard::manifest::{CACHE_INDEX, CACHE_MANIFEST, CacheManifest, Hash128, Manifest};
use crate::error::{Error, Result, needed, room};
use crate::fetch::address::Address;
use crate::fetch::board;
use crate::fetch::board::{Board, Needs};
use crate::fetch::download;
use crate::fetch::download::{PATIENCE, PATIENCE_AT_FIRST};
use crate::fetch::folder::{Folder, TROUBLE};
use crate::fetch::leader::{Cache, Leader, least_room, too_little};
use crate::fetch::messages::{
    LONGEST, Opened, Place, Reply, Request, Trouble, from_bytes, to_bytes,
};
use crate::fetch::options::FetchOptions;
use crate::fetch::store::Store;
use crate::fetch::uses::Uses;
use crate::plan::{Plan, PlanOptions, SamplerTable};
use crate::pool::coordinator::process::greet_consumer;
use crate::sys::memory;
use crate::sys::process;
use crate::sys::process::PidFd;
use crate::sys::socket;
use crate::sys::socket::Received;

/// Between two looks at what other ranks need; longer where there are very many shards.
const LOOK: Duration = Duration::from_millis(20);
const LOOK_PER_SHARD: Duration = Duration::from_micros(2);

/// Rows of the plan that are looked at between two looks at the network.
const ROWS: u64 = 4096;

/// Between two looks whether the consumer lives, beside its socket, which mostly says it.
const CONSUMER_LOOK: Duration = Duration::from_millis(250);

/// Until somebody says something.
const LONG: Duration = Duration::from_secs(3600);

const EXIT_ENDED: i32 = 0;
const EXIT_FAILED: i32 = 1;

/// Lives as a fetcher on `socket`; the exit status.
pub(super) fn live(socket: OwnedFd) -> i32 {
    match lead(socket) {
        Ok(()) => EXIT_ENDED,
        // The consumer sees that it ended, and starts another.
        Err(_) => EXIT_FAILED,
    }
}

fn lead(socket: OwnedFd) -> Result<()> {
    process::reset_signals()?;
    memory::leave_no_core()?;
    process::lead_own_group()?;
    let socket = process::above_standard_streams(socket)?;
    process::close_all_but(&[0, 1, 2, socket.as_raw_fd()])?;
    process::standard_streams_to_null()?;
    process::set_name(c"featherload-fe");
    let consumer = greet_consumer(&socket)?;
    // Fails where it was done before, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::io("start the fetcher", e))?;
    let ended = runtime.block_on(async {
        let line = Line::new(socket)?;
        let (served, gone) = (pin!(serve(&line)), pin!(end_of(&consumer)));
        match select(served, gone).await {
            Either::Left((served, _)) => served,
            Either::Right((ended, _)) => ended,
        }
    });
    // A name that is being resolved is not waited for.
    runtime.shutdown_background();
    ended
}

/// Returns when the consumer has ended. A copy of its socket may be open all the same, in a fork
/// of it.
async fn end_of(consumer: &PidFd) -> Result<()> {
    while !socket::readable(consumer.as_fd(), Duration::ZERO)? {
        tokio::time::sleep(CONSUMER_LOOK).await;
    }
    Ok(())
}

/// The socket to the consumer, read without waiting.
struct Line(UnixStream);

impl Line {
    fn new(socket: OwnedFd) -> Result<Self> {
        let failed = |e| Error::io("wait for the consumer", e);
        let socket = std::os::unix::net::UnixStream::from(socket);
        socket.set_nonblocking(true).map_err(failed)?;
        UnixStream::from_std(socket).map(Self).map_err(failed)
    }

    fn reply(&self, reply: &Reply) -> Result<()> {
        socket::send(self.0.as_fd(), &to_bytes(reply)?, &[])
    }

    /// What came, if anything did; an error when the other end is closed.
    fn receive(&self) -> Result<Option<(Request, Vec<OwnedFd>)>> {
        let mut buffer = vec![0; LONGEST];
        let mut failed = None;
        // The error that says that nothing is there has it wait for more.
        let received = self.0.try_io(Interest::READABLE, || {
            match socket::receive(self.0.as_fd(), &mut buffer, Duration::ZERO) {
                Ok(Received::Timeout) => Err(io::ErrorKind::WouldBlock.into()),
                Ok(received) => Ok(received),
                Err(e) => {
                    failed = Some(e);
                    Ok(Received::Closed)
                }
            }
        });
        match (received, failed) {
            (_, Some(e)) => Err(e),
            (Ok(Received::Message(n, fds)), None) => Ok(Some((from_bytes(&buffer[..n])?, fds))),
            (Ok(_), None) => Err(Error::protocol("the consumer is gone")),
            (Err(_), None) => Ok(None),
        }
    }
}

async fn serve(line: &Line) -> Result<()> {
    let mut session: Option<Session> = None;
    loop {
        let done = async {
            while let Some((request, fds)) = line.receive()? {
                match (request, &mut session) {
                    (
                        Request::Open {
                            address,
                            options,
                            room,
                        },
                        None,
                    ) => {
                        let opened = Session::open(&address, &options, room).await;
                        let (opened, answer) = opened.map_err(Stop::Trouble)?;
                        line.reply(&Reply::Opened(answer))?;
                        session = Some(opened);
                    }
                    (
                        Request::Plan {
                            options,
                            at,
                            epochs,
                        },
                        Some(session),
                    ) => {
                        session.plan(*options, at, epochs, fds)?;
                        line.reply(&Reply::Planned)?;
                    }
                    (
                        Request::At(at),
                        Some(Session {
                            uses: Some(uses), ..
                        }),
                    ) => {
                        uses.go_on(at.into());
                    }
                    (
                        Request::Jump(at),
                        Some(Session {
                            uses: Some(uses), ..
                        }),
                    ) => {
                        uses.jump(at.into());
                    }
                    (Request::Report, Some(session)) => {
                        let leader = session.leader.as_ref();
                        let counts = leader.map(|leader| leader.counts).unwrap_or_default();
                        line.reply(&Reply::Report(counts))?;
                    }
                    (request, _) => {
                        let what = format!("{request:?} came out of turn");
                        return Err(Stop::Failed(Error::protocol(what)));
                    }
                }
            }
            let pause = match &mut session {
                Some(session) => session.work()?,
                None => LONG,
            };
            wait(line, &mut session, pause).await
        };
        match done.await {
            Ok(()) => {}
            Err(Stop::Failed(e)) => {
                let about = session.as_ref().map(|session| &session.cache.folder);
                let about = about.map_or_else(String::new, |f| f.path().display().to_string());
                // Fails where it was the socket that did, and nobody is there to hear it.
                let _ = line.reply(&Reply::Trouble(Trouble::new(about, e.to_string())));
                return Err(e);
            }
            Err(Stop::Trouble(trouble)) => {
                if let Some(session) = &session {
                    session.tell_others(&trouble);
                }
                return line.reply(&Reply::Trouble(trouble));
            }
        }
    }
}

/// Until something came, or the time is over.
async fn wait(
    line: &Line,
    session: &mut Option<Session>,
    pause: Duration,
) -> std::result::Result<(), Stop> {
    let leader = session.as_mut().and_then(|session| session.leader.as_mut());
    let ended = async {
        match leader {
            Some(leader) => leader.ended().await,
            None => std::future::pending().await,
        }
    };
    let (readable, ended) = (pin!(line.0.readable()), pin!(ended));
    match tokio::time::timeout(pause, select(readable, ended)).await {
        Err(_) => Ok(()),
        Ok(Either::Left((ready, _))) => {
            Ok(ready.map_err(|e| Error::io("wait for the consumer", e))?)
        }
        Ok(Either::Right((ended, _))) => Ok(ended?),
    }
}

/// Why a fetcher ends.
enum Stop {
    /// The consumer is told.
    Trouble(Trouble),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(e: Error) -> Self {
        Self::Failed(e)
    }
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

/// One rank's use of one cache.
struct Session {
    cache: Cache,
    /// Bytes of shards that may be there.
    room: u64,
    bytes: Vec<u64>,
    uses: Option<Uses>,
    board: Option<Board>,
    boards: u32,
    leader: Option<Leader>,
    began: SystemTime,
}

impl Session {
    /// Manifest and index of a cache, into its folder.
    async fn open(
        address: &Address,
        options: &FetchOptions,
        known_room: Option<u64>,
    ) -> std::result::Result<(Self, Opened), Trouble> {
        let began = SystemTime::now();
        // Behind a fetcher that died the store may be away for a while.
        let patience = match known_room {
            Some(_) => PATIENCE,
            None => PATIENCE_AT_FIRST,
        };
        let store = Store::open(address)?;
        let at = |name: &str| address.of(name);
        let text = download::small(&store, CACHE_MANIFEST, patience).await?;
        let manifest = CacheManifest::from_bytes(&text)
            .map_err(|damage| Trouble::new(at(CACHE_MANIFEST), damage.to_string()))?;
        let Some(index_hash) = manifest.index.filter(|_| manifest.complete) else {
            return Err(Trouble::new(
                address.as_str(),
                "is an unfinished cache: end its build first",
            ));
        };
        // They become names of files here, whoever wrote the manifest.
        for (number, shard) in manifest.shards.iter().enumerate() {
            if shard.name != format!("shard-{number:06}") {
                let what = format!(
                    "names its shard {number} '{}', as no cache does",
                    shard.name
                );
                return Err(Trouble::new(at(CACHE_MANIFEST), what));
            }
        }
        let local = |e: Error| Trouble::new(address.as_str(), e.to_string());
        let dir = options.dir.clone().or_else(default_dir).ok_or_else(|| {
            let what = "neither XDG_CACHE_HOME nor HOME is set: give `fetch_dir`, the folder that \
                        shards come to";
            Trouble::new(address.as_str(), what).of_option("fetch_dir")
        })?;
        let folder = Folder::make(&dir, Hash128::of(&text)).map_err(|e| {
            let trouble = Trouble::new(dir.display().to_string(), e.to_string());
            trouble.of_option("fetch_dir")
        })?;
        folder.put(CACHE_MANIFEST, &text).map_err(local)?;
        let there = fs::read(folder.file(CACHE_INDEX)).ok();
        let index = match there.filter(|bytes| Hash128::of(bytes) == index_hash) {
            Some(bytes) => bytes.len() as u64,
            None => {
                let bytes = download::small(&store, CACHE_INDEX, patience).await?;
                if Hash128::of(&bytes) != index_hash {
                    let what = "is not the one that the manifest names: the cache was built again \
                                meanwhile, start the run again; or build the cache again";
                    return Err(Trouble::new(at(CACHE_INDEX), what));
                }
                folder.put(CACHE_INDEX, &bytes).map_err(local)?;
                bytes.len() as u64
            }
        };
        while !folder
            .doubt_after_a_start(&mut manifest.shards.iter().map(|shard| &*shard.name))
            .map_err(local)?
        {
            tokio::time::sleep(LOOK).await;
        }
        let fixed = index + text.len() as u64;
        let bytes: Vec<u64> = manifest.shards.iter().map(|shard| shard.bytes).collect();
        let all = bytes.iter().fold(0u64, |sum, n| sum.saturating_add(*n));
        let room = match known_room {
            Some(room) => room,
            None => room_for_shards(&folder, options.limit, fixed, &bytes, all)?,
        };
        let opened = Opened {
            folder: folder.path().to_owned(),
            bytes: all,
            room,
        };
        let session = Self {
            cache: Cache {
                store,
                folder,
                shards: manifest.shards.into(),
            },
            room,
            bytes,
            uses: None,
            board: None,
            boards: 0,
            leader: None,
            began,
        };
        Ok((session, opened))
    }

    /// From now on this rank's shards come.
    fn plan(
        &mut self,
        options: PlanOptions,
        at: Place,
        epochs: Option<u64>,
        fds: Vec<OwnedFd>,
    ) -> std::result::Result<(), Stop> {
        let mut fds = fds.into_iter();
        let index = fds.next().map(Index::from_fd).transpose()?;
        let index = index.ok_or_else(|| Error::protocol("a plan came without its index"))?;
        let sampler = options.sampler;
        let table = fds.next().filter(|_| sampler.needs_table());
        let table = table
            .map(|fd| SamplerTable::from_fd(fd, &sampler, index.len()))
            .transpose()?;
        let plan = Plan::with_table(index.len(), options, table)?;
        // Where nothing is ever removed any order works.
        let all = self
            .bytes
            .iter()
            .fold(0u64, |sum, n| sum.saturating_add(*n));
        let evicts = all > self.room;
        let of = (plan, index);
        let mut uses = Uses::new(of, self.bytes.clone(), at.into(), epochs, evicts);
        if evicts {
            uses.look_ahead_over_the_epoch();
        }
        self.boards += 1;
        let mut board = Board::make(&self.cache.folder, self.boards)?;
        board.write(&Needs {
            most: uses.most_bytes(),
            room: self.room,
            distances: uses.distances().collect(),
        })?;
        self.uses = Some(uses);
        self.board = Some(board);
        let all = board::read_all(&self.cache.folder, self.bytes.len(), false)?;
        // One that keeps all holds nothing, and would lose what another one removes.
        if let Some(other) = all.iter().find(|needs| needs.room != self.room) {
            let what = format!(
                "another run uses {} with {} for shards, and this one has {}: give the same \
                 `fetch_limit`, or another `fetch_dir`",
                self.cache.folder.path().display(),
                room(other.room),
                room(self.room)
            );
            let about = self.cache.folder.path().display().to_string();
            let trouble = Trouble::new(about, what).of_option("fetch_limit");
            return Err(Stop::Trouble(trouble));
        }
        let most = all.iter().fold(0u64, |sum, n| sum.saturating_add(n.most));
        let largest = self.bytes.iter().copied().max().unwrap_or(0);
        if evicts && least_room(most, largest) > self.room {
            let trouble = too_little(&self.cache.folder, &all, self.room, &self.bytes);
            return Err(Stop::Trouble(trouble));
        }
        Ok(())
    }

    /// What is to be done now; how long nothing will be then, unless something comes.
    fn work(&mut self) -> std::result::Result<Duration, Stop> {
        let Some(uses) = &mut self.uses else {
            return Ok(LONG);
        };
        uses.look_ahead(ROWS);
        let most = uses.most_bytes();
        let has_more = uses.has_more();
        let needs = Needs {
            most,
            room: self.room,
            distances: uses.distances().collect(),
        };
        if let Some(board) = &mut self.board {
            board.write(&needs)?;
        }
        if self.leader.is_none() {
            match self.cache.folder.lead()? {
                Some(right) => {
                    // Of a leader that gave up while this rank ran.
                    self.hear_of_trouble()?;
                    self.leader = Some(Leader::begin(self.cache.clone(), right)?);
                }
                None => self.hear_of_trouble()?,
            }
        }
        if let Some(leader) = &mut self.leader {
            let all = board::read_all(&self.cache.folder, self.bytes.len(), true)?;
            leader.step(&all)?;
        }
        let look = LOOK.max(LOOK_PER_SHARD * u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
        Ok(match has_more {
            true => Duration::ZERO,
            false => look,
        })
    }

    /// Why the leader gave up, where it did.
    fn hear_of_trouble(&self) -> std::result::Result<(), Stop> {
        let path = self.cache.folder.file(TROUBLE);
        let written = fs::metadata(&path).and_then(|meta| meta.modified());
        // An older one is of a run before this.
        if written.is_ok_and(|written| written < self.began) {
            return Ok(());
        }
        let Ok(text) = fs::read(path) else {
            return Ok(());
        };
        // One that is just being written is heard of the next time.
        match from_bytes::<Trouble>(&text) {
            Ok(trouble) => Err(Stop::Trouble(trouble)),
            Err(_) => Ok(()),
        }
    }

    /// Lets the other ranks know. They end by the same reason, and not each by its own tries.
    fn tell_others(&self, trouble: &Trouble) {
        if self.leader.is_some()
            && let Ok(text) = to_bytes(trouble)
        {
            // Without it each finds out by itself.
            let _ = self.cache.folder.put(TROUBLE, &text);
        }
    }
}

/// Bytes of shards that may be in the folder at a time.
fn room_for_shards(
    folder: &Folder,
    limit: Option<u64>,
    fixed: u64,
    bytes: &[u64],
    all: u64,
) -> std::result::Result<u64, Trouble> {
    let trouble = |what: String| {
        Trouble::new(folder.path().display().to_string(), what).of_option("fetch_limit")
    };
    let largest = bytes.iter().copied().max().unwrap_or(0);
    let Some(limit) = limit else {
        let (free, there) = (free_bytes(folder.path()), bytes_there(folder.path()));
        return match free.saturating_add(there) / 2 >= all.saturating_add(fixed) {
            true => Ok(all),
            false => Err(trouble(format!(
                "the cache has {}, and {} are free at {}: give `fetch_limit`, the most bytes \
                 that its shards may take there",
                needed(all),
                room(free),
                folder.path().display()
            ))),
        };
    };
    let left = limit.saturating_sub(fixed).min(all);
    let least = least_room(0, largest).min(all);
    if left < least {
        return Err(trouble(format!(
            "`fetch_limit` leaves {} for shards behind manifest and index, and the largest shard \
             has {}: give at least {}",
            room(left),
            needed(largest),
            needed(fixed.saturating_add(least))
        )));
    }
    Ok(left)
}

fn free_bytes(path: &Path) -> u64 {
    statvfs(path).map_or(0, |s| {
        s.blocks_available().saturating_mul(s.fragment_size())
    })
}

fn bytes_there(path: &Path) -> u64 {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let lengths = entries.filter_map(|entry| entry.metadata().ok());
    lengths.fold(0, |sum, meta| sum.saturating_add(meta.len()))
}

/// Where the user keeps what can be had again.
fn default_dir() -> Option<PathBuf> {
    Some(Index::user_cache()?.join("fetched"))
}
