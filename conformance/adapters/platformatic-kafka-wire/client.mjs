// @platformatic/kafka: a consumer in a group of its own whose stream reads a partition to its end, and a producer.
import { readFileSync } from 'node:fs'
import { codecs, hasZstd, hexed, serve } from './serving.mjs'
import { consumed, failure, fetchMilliseconds, mostSize } from './consuming.mjs'
import { produced, waitMilliseconds } from './producing.mjs'

/** The library needs it; Node has it since 22. */
Promise.withResolvers ??= function () {
  const made = {}
  made.promise = new this((resolve, reject) => Object.assign(made, { resolve, reject }))
  return made
}
const { Consumer, Producer } = await import('@platformatic/kafka')

const READ_UNCOMMITTED = 0

async function decode ({ place }, delivered) {
  const records = []
  delivered.push({ records })
  const consumer = new Consumer({
    clientId: 'suite', groupId: place.topic, bootstrapBrokers: [place.bootstrap], retries: 0, maxWaitTime: fetchMilliseconds,
    maxBytes: mostSize, sessionTimeout: 10000, heartbeatInterval: 1000, rebalanceTimeout: 10000
  })
  try {
    const stream = await consumer.consume({
      topics: [place.topic], mode: 'manual', offsets: [{ topic: place.topic, partition: 0, offset: 0n }], autocommit: false,
      isolationLevel: READ_UNCOMMITTED
    })
    const failed = failure(report => stream.on('error', report))
    stream.on('data', message => records.push(record(message)))
    await consumed(place, records, failed)
    return { batches: delivered }
  } finally {
    await consumer.close(true)
  }
}

function record (one) {
  const headers = [...one.headers].map(([key, value]) => [hexed(key), hexed(value)])
  return { offset: String(one.offset), timestamp: String(one.timestamp), key: hexed(one.key), value: hexed(one.value), headers }
}

async function encode (request) {
  const { bootstrap, topic, producer: kind } = request.place
  return produced(request, async (codec, records) => {
    const producer = new Producer({
      clientId: 'suite', bootstrapBrokers: [bootstrap], retries: kind === 'transactional' ? 3 : 0, timeout: waitMilliseconds,
      ...(kind !== undefined && { idempotent: true }), ...(kind === 'transactional' && { transactionalId: topic })
    })
    try {
      const messages = records.map(one => (
        { topic, partition: 0, key: one.key, value: one.value, headers: new Map(one.headers), timestamp: BigInt(one.timestamp) }
      ))
      const transaction = kind === 'transactional' ? await producer.beginTransaction() : undefined
      await (transaction ?? producer).send({ messages, acks: -1, compression: codec })
      await transaction?.commit()
    } catch (error) {
      throw Object.assign(error, { message: reasons(error).join(': ') })
    } finally {
      await producer.close(true)
    }
  })
}

/** What its documentation names, besides the plain errors that it and zlib throw; not RangeError and TypeError. */
const ownErrors = [
  'Error', 'GenericError', 'MultipleErrors', 'AuthenticationError', 'NetworkError', 'OutOfBoundsError', 'ProtocolError',
  'ResponseError', 'TimeoutError', 'UnexpectedCorrelationIdError', 'UnfinishedWriteBufferError', 'Unsupported*', 'UserError'
]

/** What an error says, and those that it was made of, down to the answer of the broker. */
function reasons (error) {
  return [error.message, ...(error.errors ?? []).flatMap(reasons)]
}

serve({
  name: '@platformatic/kafka, Consumer and Producer', version: JSON.parse(readFileSync(new URL('./node_modules/@platformatic/kafka/package.json', import.meta.url))).version,
  language: 'JavaScript', homepage: 'https://github.com/platformatic/kafka', issues: 'https://github.com/platformatic/kafka/issues'
}, {
  magic: [2], codec: hasZstd ? codecs : codecs.slice(0, 4), crc: false, control: 'hidden', headers: 'ordered',
  batchMeta: false, bytesKeys: true, partialTail: false, errors: ownErrors
}, { decode, encode })
