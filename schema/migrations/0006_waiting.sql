-- SPDX-License-Identifier: Apache-2.0
--
-- The producer tells a caller who waits whether each consumer of an event's topic has applied it: it reads which consumers
-- those are.

GRANT SELECT (consumer, scope, topic, partition, seq) ON onceward.consumer_progress TO onceward_producer;
