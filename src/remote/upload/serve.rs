//! The sender's life: do what the consumer says, one request after the other, and hear meanwhile
//! whether the consumer is there.
//!
//! In the sender. Ends when its consumer does, and ends then what it has begun in the store.
//! Nothing is logged: the consumer is told.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};

use crate::error::{Error, Result};
use crate::remote::helper::helper_loop;
use crate::remote::helper::helper_loop::Line;
use crate::remote::helper::messages::{Trouble, name_of};
use crate::remote::helper::progress::Reports;
use crate::remote::store::client::Store;
use crate::remote::upload::messages::{Reply, Request};
use crate::remote::upload::object::Objects;
use crate::remote::upload::parts::{Open, Whole};
use crate::remote::upload::shard;

/// How long a file that is being written in a folder as the store may take at the end: broken
/// off, it would stay there half.
const PATIENCE: Duration = Duration::from_millis(500);

/// Lives as a sender on `socket`; the exit status.
pub(super) fn live(socket: OwnedFd) -> i32 {
    let open = Open::default();
    helper_loop::live(
        socket,
        c"featherload-se",
        async |line| serve(line, &open).await,
        async || open.abort().await,
        PATIENCE,
    )
}

async fn serve(line: &Line, open: &Open) -> Result<()> {
    let mut objects: Option<Objects> = None;
    let mut requests: VecDeque<Request> = VecDeque::new();
    let mut reports = Reports::of_all();
    loop {
        while let Some((request, _)) = line.receive()? {
            requests.push_back(request);
        }
        let Some(request) = requests.pop_front() else {
            line.readable().await?;
            continue;
        };
        let reply = {
            let done = line.reporting(&mut reports, answer(&mut objects, open, request));
            let mut done = pin!(done);
            loop {
                match select(done, pin!(line.readable())).await {
                    Either::Left((reply, _)) => break reply,
                    Either::Right((ready, more)) => {
                        ready?;
                        while let Some((request, _)) = line.receive()? {
                            requests.push_back(request);
                        }
                        done = more;
                    }
                }
            }
        };
        match reply? {
            Ok(reply) => line.reply(&reply)?,
            Err(trouble) => return line.give_up(trouble),
        }
    }
}

async fn answer(
    objects: &mut Option<Objects>,
    open: &Open,
    request: Request,
) -> std::result::Result<Reply, Trouble> {
    let objects = match (&request, objects) {
        (Request::Open { address }, objects) => {
            *objects = Some(Objects::new(Store::open_to_send(address)?, open.clone()));
            return Ok(Reply::Done);
        }
        (_, Some(objects)) => objects,
        (request, None) => {
            let e = Error::protocol(format!("{} came out of turn", name_of(request)));
            return Err(Trouble::new("the sender", e.to_string()));
        }
    };
    Ok(match request {
        Request::Open { .. } => Reply::Done,
        Request::Get { name, to } => Reply::Found(objects.get_into(&name, &to).await?),
        Request::Has { name } => Reply::Found(objects.size(&name).await?.is_some()),
        Request::Look { folder, shards } => {
            Reply::There(shard::look(objects, &folder, &shards).await?)
        }
        Request::Begin { from, over } => Reply::Begun(shard::begin(objects, &from, over).await?),
        Request::Send {
            folder,
            shard,
            replace,
        } => {
            shard::send(objects, &folder, &shard, replace).await?;
            let counts = objects.take_counts();
            Reply::Up { shard, counts }
        }
        Request::Put {
            name,
            from,
            bytes,
            hash,
        } => {
            let path = &from;
            let whole = Whole { path, bytes, hash };
            objects.put_file(&name, &whole, true).await?;
            Reply::Ended(objects.take_counts())
        }
        Request::Remove { shards } => {
            shard::remove(objects, &shards).await?;
            Reply::Done
        }
        Request::End {
            folder,
            over,
            replace,
        } => {
            shard::end(objects, &folder, over, replace).await?;
            Reply::Ended(objects.take_counts())
        }
    })
}
