"use strict";
// kafkajs as a client program; ../actions.py says how it is called. `make .js/package-lock.json` installs the library.

const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { setTimeout: sleep } = require("node:timers/promises");
const { CompressionTypes, ConfigResourceTypes, Kafka, Partitioners, logLevel } = require(
  join(__dirname, "..", "..", "..", ".js", "node_modules", "kafkajs"),
);
const { digest, fingerprint, record } = require("./records.js");

const DEFAULTS = {
  acks: "all",
  aborted: 0,
  compression: "none",
  group: "group",
  headers: true,
  idempotent: false,
  isolation: "read_uncommitted",
  partitions: 3,
  per_s: 0,
  replication_factor: 1,
  security: "PLAINTEXT",
  seed: "seed",
  size: 0,
  timeout_s: 90,
};
const REAUTHENTICATE_MS = 1000; // before the end of a session; sessions of the tests are short

/** To standard error, and never as a JSON line: those are results. */
const logCreator = () => (entry) => {
  console.error(entry.label, entry.namespace, entry.log.message, entry.log.error ?? "");
};

function sasl(action) {
  if (action.token) {
    const value = readFileSync(action.token, "utf8");
    return { mechanism: "oauthbearer", oauthBearerProvider: async () => ({ value }) };
  }
  const { mechanism, username, password } = action;
  return mechanism ? { mechanism: mechanism.toLowerCase(), username, password } : undefined;
}

function ssl({ security, ca, cert }) {
  if (!security.includes("SSL")) {
    return false;
  }
  const own = cert ? readFileSync(cert) : undefined;
  return { ca: [readFileSync(ca)], cert: own, key: own };
}

function kafka(bootstrap, action) {
  return new Kafka({
    brokers: [bootstrap],
    clientId: "kafkajs-test",
    connectionTimeout: 10000,
    logCreator,
    logLevel: logLevel.WARN,
    reauthenticationThreshold: REAUTHENTICATE_MS,
    retry: { initialRetryTime: 100, maxRetryTime: 1000, retries: action.timeout_s < 10 ? 2 : 20 },
    sasl: sasl(action),
    ssl: ssl(action),
  });
}

/** Send the records of a seed; in a transaction where there is a transactional id. */
async function produce(bootstrap, action) {
  const transactional = Boolean(action.transactional_id);
  const producer = kafka(bootstrap, action).producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    idempotent: action.idempotent || transactional,
    maxInFlightRequests: transactional ? 1 : undefined,
    transactionalId: action.transactional_id,
  });
  const compression = CompressionTypes[action.compression === "none" ? "None" : action.compression.toUpperCase()];
  const acks = action.acks === "all" ? -1 : Number(action.acks);

  /** The indices that failed. */
  async function send(by, seed, count) {
    const made = Array.from({ length: count }, (_, index) => record(seed, index, action.size, action.headers));
    const failed = [];
    const started = Date.now();
    for (let first = 0, each; first < count; first += each) {
      // The first of a transaction goes alone: while the transaction before it ends, brokers answer
      // CONCURRENT_TRANSACTIONS, and kafkajs then loses or doubles records that go to several brokers.
      each = action.per_s || (transactional && first === 0) ? 1 : count - first;
      const due = action.per_s ? started + (1000 * first) / action.per_s : started;
      await sleep(Math.max(0, due - Date.now()));
      try {
        await by.send({ topic: action.topic, messages: made.slice(first, first + each), acks, compression });
      } catch (error) {
        console.error(error);
        failed.push(...Array.from({ length: each }, (_, index) => first + index));
      }
    }
    return failed;
  }

  await producer.connect();
  let failed;
  if (transactional) {
    if (action.aborted) {
      const undone = await producer.transaction();
      await send(undone, "aborted", action.aborted);
      await undone.abort();
    }
    const transaction = await producer.transaction();
    failed = await send(transaction, action.seed, action.count);
    await transaction.commit();
  } else {
    failed = await send(producer, action.seed, action.count);
  }
  await producer.disconnect();
  return { acknowledged: action.count - failed.length, failed };
}

/** Read `count` records in a classic group. Each batch counts once it is committed: a rebalance doubles none. */
async function consume(bootstrap, action) {
  const consumer = kafka(bootstrap, action).consumer({
    groupId: action.group,
    maxBytesPerPartition: 32 << 20,
    maxWaitTimeInMs: 500,
    readUncommitted: action.isolation === "read_uncommitted",
  });
  const fingerprints = [];
  const enough = () => (action.unique ? new Set(fingerprints).size : fingerprints.length) >= action.count;
  await consumer.connect();
  await consumer.subscribe({ topics: [action.topic], fromBeginning: true });
  await new Promise((resolve, reject) => {
    setTimeout(resolve, action.timeout_s * 1000);
    const eachBatch = async ({ batch }) => {
      const { topic, partition, messages } = batch;
      await consumer.commitOffsets([{ topic, partition, offset: String(BigInt(batch.lastOffset()) + 1n) }]);
      fingerprints.push(...messages.map((message) => fingerprint(topic, message)));
      if (enough()) {
        resolve();
      }
    };
    consumer.run({ autoCommit: false, eachBatch }).catch(reject);
  });
  await consumer.disconnect();
  const result = { count: fingerprints.length, digest: digest(fingerprints) };
  return action.list ? { ...result, fingerprints } : result;
}

/** Create a topic, look at everything, delete it. */
async function administrate(bootstrap, action) {
  const { topic } = action;
  const admin = kafka(bootstrap, action).admin();
  await admin.connect();
  const { partitions, replication_factor: replicationFactor } = action;
  await admin.createTopics({ topics: [{ topic, numPartitions: partitions, replicationFactor }] });
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
  const { brokers } = await admin.describeCluster();
  const configs = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: ConfigResourceTypes.TOPIC, name: topic }],
  });
  const result = {
    partitions: topics[0].partitions.length,
    brokers: brokers.map(({ host, port }) => `${host}:${port}`),
    topics: (await admin.listTopics()).includes(topic),
    configs: configs.resources[0].configEntries.length,
    offsets: (await admin.fetchTopicOffsets(topic)).map(({ offset }) => Number(offset)),
    groups: (await admin.listGroups()).groups.map(({ groupId }) => groupId).sort(),
  };
  await admin.deleteTopics({ topics: [topic] });
  await admin.disconnect();
  return result;
}

async function main([bootstrap, ...actions]) {
  const table = { produce, consume, administrate };
  for (const text of actions) {
    const action = { ...DEFAULTS, ...JSON.parse(text) };
    const started = Date.now();
    try {
      const result = await table[action.do](bootstrap, action);
      console.log(JSON.stringify({ do: action.do, ...result, took_s: (Date.now() - started) / 1000 }));
    } catch (error) {
      console.error(error);
      console.log(JSON.stringify({ do: action.do, error: `${error.name}: ${error.message}` }));
      process.exit(1);
    }
  }
  process.exit(0);
}

main(process.argv.slice(2));
