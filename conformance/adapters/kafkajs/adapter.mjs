// kafkajs: decodeMessages of its Fetch response, RecordBatch of its Produce request.
import { createRequire } from 'node:module'
import { asStored, codecs, hexed, serve, unhexed, whyUnencodable } from './serving.mjs'

const require = createRequire(import.meta.url)
const Decoder = require('kafkajs/src/protocol/decoder')
const decodeMessages = require('kafkajs/src/protocol/requests/fetch/v4/decodeMessages')
const Long = require('kafkajs/src/utils/long')
const RecordV0 = require('kafkajs/src/protocol/recordBatch/record/v0')
const { RecordBatch } = require('kafkajs/src/protocol/recordBatch/v0')

async function decode (request) {
  const data = unhexed(request.data)
  const size = Buffer.alloc(4)
  size.writeInt32BE(data.length)
  const records = await decodeMessages(new Decoder(Buffer.concat([size, data])))
  return { batches: [{ records: records.map(record) }] }
}

function record (one) {
  const headers = Object.entries(one.headers ?? {}).flatMap(([key, values]) =>
    (Array.isArray(values) ? values : [values]).map(value => [hexed(Buffer.from(key)), hexed(value)]))
  return { offset: String(one.offset), timestamp: String(one.timestamp ?? -1), key: hexed(one.key), value: hexed(one.value), headers }
}

async function encode (request) {
  const pieces = []
  for (const batch of request.batches) {
    whyUnencodable(batch)
    pieces.push(asStored(await encoded(batch), batch))
  }
  return { data: hexed(Buffer.concat(pieces)) }
}

async function encoded (batch) {
  const base = BigInt(batch.baseOffset ?? 0)
  const times = batch.records.map(one => BigInt(one.timestamp))
  const largest = times.reduce((one, other) => (one > other ? one : other))
  const built = await RecordBatch({
    compression: codecs.indexOf(batch.codec ?? 'none'),
    firstTimestamp: Long.fromValue(String(times[0])),
    maxTimestamp: Long.fromValue(String(largest)),
    partitionLeaderEpoch: batch.partitionLeaderEpoch ?? -1,
    lastOffsetDelta: Number(BigInt(batch.records.at(-1).offset) - base),
    transactional: batch.isTransactional ?? false,
    producerId: Long.fromValue(String(batch.producerId ?? -1)),
    producerEpoch: batch.producerEpoch ?? -1,
    firstSequence: batch.baseSequence ?? -1,
    records: batch.records.map((one, number) => RecordV0({
      offsetDelta: Number(BigInt(one.offset) - base),
      timestampDelta: Long.fromValue(String(times[number] - times[0])),
      key: unhexed(one.key),
      value: unhexed(one.value),
      headers: headersOf(one)
    }))
  })
  return built.buffer
}

/** An object whose values are lists where a key comes more than once, as an application has to give them. */
function headersOf (one) {
  const found = {}
  for (const [key, value] of one.headers ?? []) {
    const name = unhexed(key).toString()
    const values = [...(Array.isArray(found[name]) ? found[name] : name in found ? [found[name]] : []), unhexed(value)]
    found[name] = values.length === 1 ? values[0] : values
  }
  return found
}

serve({
  name: 'kafkajs', version: require('kafkajs/package.json').version, language: 'JavaScript',
  homepage: 'https://github.com/tulios/kafkajs', issues: 'https://github.com/tulios/kafkajs/issues'
}, {
  magic: [0, 1, 2], codec: ['none', 'gzip'], crc: false, control: 'surfaced', headers: 'unordered', batchMeta: false,
  bytesKeys: false, partialTail: false
}, { decode, encode })
