-- Who owes what is read from the index alone: a look at everybody's would otherwise read a row for each.
DROP INDEX acks_owed;
CREATE INDEX acks_owed ON deliveries (recipient, message, ack_due, acked_at) WHERE ack_due IS NOT NULL AND acked_at IS NULL;
