-- The history. Everything below "projections" can be computed from these two tables.
CREATE TABLE events (
    number   INTEGER PRIMARY KEY,
    kind     TEXT NOT NULL,
    at       INTEGER NOT NULL,
    actor    TEXT NOT NULL,
    key      TEXT,
    payload  TEXT NOT NULL,
    previous BLOB NOT NULL,
    hash     BLOB NOT NULL
) STRICT;

-- Free text stands beside the event that names it by its salted hash; erasing a row breaks no chain.
CREATE TABLE texts (
    event INTEGER NOT NULL REFERENCES events (number),
    field TEXT NOT NULL,
    salt  BLOB NOT NULL,
    text  TEXT NOT NULL,
    PRIMARY KEY (event, field)
) STRICT, WITHOUT ROWID;

-- Projections.
CREATE TABLE project (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id  TEXT NOT NULL,
    key TEXT NOT NULL
) STRICT;

CREATE TABLE agents (
    name          TEXT PRIMARY KEY COLLATE NOCASE,
    number        INTEGER NOT NULL,
    credential    TEXT NOT NULL,
    program       TEXT,
    model         TEXT,
    task_event    INTEGER,
    policy        TEXT NOT NULL,
    session       TEXT,
    parent        TEXT COLLATE NOCASE REFERENCES agents (name),
    standing      TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    acted_at      INTEGER NOT NULL,
    thread        TEXT COLLATE NOCASE
) STRICT;

CREATE TABLE sessions (
    session TEXT PRIMARY KEY,
    agent   TEXT NOT NULL COLLATE NOCASE REFERENCES agents (name)
) STRICT, WITHOUT ROWID;

CREATE TABLE threads (
    id            TEXT PRIMARY KEY COLLATE NOCASE,
    first_message INTEGER,
    done          INTEGER NOT NULL,
    opened_at     INTEGER NOT NULL,
    last_at       INTEGER NOT NULL,
    last_number   INTEGER NOT NULL,
    messages      INTEGER NOT NULL
) STRICT;
CREATE INDEX threads_by_activity ON threads (last_number);

CREATE TABLE members (
    thread TEXT NOT NULL COLLATE NOCASE REFERENCES threads (id),
    party  TEXT NOT NULL,
    PRIMARY KEY (thread, party)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
    number       INTEGER PRIMARY KEY REFERENCES events (number),
    thread       TEXT NOT NULL COLLATE NOCASE REFERENCES threads (id),
    sender       TEXT NOT NULL,
    reply_to     INTEGER REFERENCES messages (number),
    importance   TEXT NOT NULL,
    ack_within   INTEGER,
    sent_at      INTEGER NOT NULL,
    twin_project TEXT,
    twin_number  INTEGER,
    -- The events that erased its texts, or only the subject that it had taken over.
    redacted_by  INTEGER REFERENCES events (number),
    subject_redacted_by INTEGER REFERENCES events (number)
) STRICT;
CREATE INDEX messages_of_thread ON messages (thread, number);
CREATE INDEX messages_of_sender ON messages (sender, number);
CREATE UNIQUE INDEX messages_of_twin ON messages (twin_project, twin_number) WHERE twin_project IS NOT NULL;

CREATE TABLE deliveries (
    message      INTEGER NOT NULL REFERENCES messages (number),
    recipient    TEXT NOT NULL,
    line         TEXT NOT NULL,
    sender       TEXT NOT NULL,
    delivered_by INTEGER,
    delivered_at INTEGER,
    lapsed       INTEGER NOT NULL,
    surfaced_at  INTEGER,
    read_at      INTEGER,
    acked_at     INTEGER,
    -- Set while an acknowledgement was asked for and the copy has arrived.
    ack_due      INTEGER,
    PRIMARY KEY (message, recipient)
) STRICT, WITHOUT ROWID;
CREATE INDEX inbox ON deliveries (recipient, delivered_by) WHERE delivered_by IS NOT NULL;
CREATE INDEX inbox_unread ON deliveries (recipient, delivered_by, message, surfaced_at)
    WHERE delivered_by IS NOT NULL AND read_at IS NULL;
CREATE INDEX acks_owed ON deliveries (recipient, message) WHERE ack_due IS NOT NULL AND acked_at IS NULL;
CREATE INDEX acks_awaited ON deliveries (sender, message) WHERE ack_due IS NOT NULL AND acked_at IS NULL;
CREATE INDEX held ON deliveries (sender, recipient, message) WHERE delivered_by IS NULL AND lapsed = 0;
CREATE INDEX correspondence ON deliveries (sender, recipient, message);

CREATE TABLE reservations (
    id               INTEGER PRIMARY KEY REFERENCES events (number),
    holder           TEXT NOT NULL COLLATE NOCASE REFERENCES agents (name),
    pattern          TEXT NOT NULL,
    prefix           TEXT NOT NULL,
    exclusive        INTEGER NOT NULL,
    reason           TEXT COLLATE NOCASE,
    ttl              INTEGER NOT NULL,
    first_granted_at INTEGER NOT NULL,
    granted_at       INTEGER NOT NULL,
    expires_at       INTEGER NOT NULL,
    -- From here on the holder's activity renews.
    renew_at         INTEGER NOT NULL,
    generation       INTEGER NOT NULL,
    ended            INTEGER NOT NULL
) STRICT;
CREATE INDEX claims_by_prefix ON reservations (prefix) WHERE ended = 0;
CREATE INDEX claims_by_holder ON reservations (holder, pattern, expires_at) WHERE ended = 0;
CREATE INDEX claims_to_renew ON reservations (holder, renew_at) WHERE ended = 0;
CREATE INDEX claims_by_expiry ON reservations (expires_at) WHERE ended = 0;
CREATE INDEX claims_by_reason ON reservations (reason) WHERE ended = 0 AND reason IS NOT NULL;

-- Pairs of claims that share a path, in both directions, while neither has ended; the holder is that of the first.
CREATE TABLE overlaps (
    one    INTEGER NOT NULL REFERENCES reservations (id),
    other  INTEGER NOT NULL REFERENCES reservations (id),
    holder TEXT NOT NULL COLLATE NOCASE REFERENCES agents (name),
    PRIMARY KEY (one, other)
) STRICT, WITHOUT ROWID;
CREATE INDEX overlaps_of_holder ON overlaps (holder, one, other);

CREATE TABLE takeovers (
    reservation INTEGER NOT NULL REFERENCES reservations (id),
    generation  INTEGER NOT NULL,
    from_agent  TEXT NOT NULL COLLATE NOCASE,
    by_party    TEXT NOT NULL,
    PRIMARY KEY (reservation, generation)
) STRICT, WITHOUT ROWID;
CREATE INDEX takeovers_from ON takeovers (from_agent, reservation);

-- What one side of a pair was told, until the contest ends.
CREATE TABLE told (
    agent  TEXT NOT NULL COLLATE NOCASE,
    mine   INTEGER NOT NULL,
    theirs INTEGER NOT NULL,
    mark   TEXT NOT NULL,
    PRIMARY KEY (agent, mine, theirs)
) STRICT, WITHOUT ROWID;
CREATE INDEX told_of_claim ON told (mine);

CREATE TABLE links (
    id           INTEGER PRIMARY KEY REFERENCES events (number),
    asker        TEXT NOT NULL,
    asked        TEXT NOT NULL,
    decided      TEXT NOT NULL,
    asker_blocks INTEGER NOT NULL,
    asked_blocks INTEGER NOT NULL,
    by_policy    INTEGER NOT NULL,
    requested_at INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX links_of_asker ON links (asker, asked);
CREATE INDEX links_of_asked ON links (asked, asker);

-- Other projects that were moved; everybody of theirs stands in these tables under the new path.
CREATE TABLE moves (
    number       INTEGER PRIMARY KEY REFERENCES events (number),
    from_project TEXT NOT NULL,
    to_project   TEXT NOT NULL
) STRICT;

CREATE VIRTUAL TABLE search USING fts5 (subject, body, content = '', contentless_delete = 1);

-- Beside the history: answers remembered for ever, failed requests kept for a day, and what another project has yet to
-- be told.
CREATE TABLE answers (
    actor   TEXT NOT NULL,
    key     TEXT NOT NULL,
    verb    TEXT NOT NULL,
    salt    BLOB NOT NULL,
    request TEXT NOT NULL,
    answer  TEXT NOT NULL,
    -- The newest event at that time.
    number  INTEGER NOT NULL,
    PRIMARY KEY (actor, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE failed_requests (
    actor   TEXT NOT NULL,
    key     TEXT NOT NULL,
    code    TEXT NOT NULL,
    at      INTEGER NOT NULL,
    request TEXT NOT NULL,
    details TEXT NOT NULL,
    -- Orders the failures of an agent.
    ordinal INTEGER NOT NULL,
    PRIMARY KEY (actor, key)
) STRICT, WITHOUT ROWID;

-- Erased texts whose bytes may still stand in the file or its log.
CREATE TABLE cleanings (
    redaction INTEGER PRIMARY KEY,
    -- The file was rewritten without them; the log still has to be folded.
    rewritten INTEGER NOT NULL
) STRICT;

CREATE TABLE crossings (
    actor   TEXT NOT NULL,
    key     TEXT NOT NULL,
    project TEXT NOT NULL,
    pid     INTEGER NOT NULL,
    errand  TEXT NOT NULL,
    PRIMARY KEY (actor, key)
) STRICT, WITHOUT ROWID;
