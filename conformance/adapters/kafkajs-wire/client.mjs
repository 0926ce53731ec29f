// kafkajs: a consumer in a group of its own that reads a partition to its end, and a producer.
import { createRequire } from 'node:module'
import { codecs, hexed, serve } from './serving.mjs'
import { consumed, failure, fetchMilliseconds, mostSize } from './consuming.mjs'
import { produced, waitMilliseconds } from './producing.mjs'

const require = createRequire(import.meta.url)
const { Kafka, logLevel } = require('kafkajs')

async function decode ({ place }, delivered) {
  const records = []
  delivered.push({ records })
  const kafka = new Kafka({ clientId: 'suite', brokers: [place.bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 0 } })
  const consumer = kafka.consumer({
    groupId: place.topic, readUncommitted: true, maxWaitTimeInMs: fetchMilliseconds, maxBytes: mostSize,
    maxBytesPerPartition: mostSize, rebalanceTimeout: 1000, retry: { retries: 0, restartOnFailure: async () => false }
  })
  const failed = failure(report => consumer.on(consumer.events.CRASH, event => report(event.payload.error)))
  await consumer.connect()
  try {
    await consumer.subscribe({ topic: place.topic, fromBeginning: true })
    await consumer.run({ autoCommit: false, eachMessage: async ({ message }) => { records.push(record(message)) } })
    await consumed(place, records, failed)
    return { batches: delivered }
  } finally {
    await consumer.disconnect()
  }
}

function record (one) {
  const headers = Object.entries(one.headers ?? {}).flatMap(([key, values]) =>
    (Array.isArray(values) ? values : [values]).map(value => [hexed(Buffer.from(key)), hexed(value)]))
  return { offset: String(one.offset), timestamp: String(one.timestamp ?? -1), key: hexed(one.key), value: hexed(one.value), headers }
}

async function encode (request) {
  const { bootstrap, topic, producer: kind } = request.place
  return produced(request, async (codec, records) => {
    const kafka = new Kafka({ clientId: 'suite', brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 0 } })
    const producer = kafka.producer({
      allowAutoTopicCreation: false, retry: { retries: kind === undefined ? 0 : 1 }, idempotent: kind !== undefined,
      ...(kind === 'transactional' && { transactionalId: topic, maxInFlightRequests: 1 })
    })
    await producer.connect()
    try {
      const messages = records.map(one => ({ ...one, partition: 0, headers: headersOf(one) }))
      const transaction = kind === 'transactional' ? await producer.transaction() : undefined
      await (transaction ?? producer).send({ topic, messages, acks: -1, timeout: waitMilliseconds, compression: codecs.indexOf(codec) })
      await transaction?.commit()
    } finally {
      await producer.disconnect()
    }
  })
}

/** An object whose values are lists where a key comes more than once, as an application has to give them. */
function headersOf (one) {
  const found = {}
  for (const [key, value] of one.headers) (found[key.toString()] ??= []).push(value)
  return Object.fromEntries(Object.entries(found).map(([key, values]) => [key, values.length === 1 ? values[0] : values]))
}

serve({
  name: 'kafkajs, Consumer and Producer', version: require('kafkajs/package.json').version, language: 'JavaScript',
  homepage: 'https://github.com/tulios/kafkajs', issues: 'https://github.com/tulios/kafkajs/issues'
}, {
  magic: [0, 1, 2], codec: ['none', 'gzip'], crc: false, control: 'hidden', headers: 'unordered', batchMeta: false,
  bytesKeys: false, partialTail: false, errors: ['KafkaJS*', 'Error'] // it throws plain errors on purpose, as zlib does
}, { decode, encode })
