// kafkajs: decodeMessages of its Fetch response, RecordBatch of its Produce request.
import { createRequire } from 'node:module'
import { asStored, codecs, hexed, serve, unhexed, whyUnencodable } from './serving.mjs'

const require = createRequire(import.meta.url)
const Decoder = require('kafkajs/src/protocol/decoder')
const decodeMessages = require('kafkajs/src/protocol/requests/fetch/v4/decodeMessages')
const Long = longOf()
const RecordV0 = require('kafkajs/src/protocol/recordBatch/record/v0')
const { RecordBatch } = require('kafkajs/src/protocol/recordBatch/v0')

/** Releases before 1.15 take 64-bit integers from a package. */
function longOf () {
  try {
    return require('kafkajs/src/utils/long')
  } catch {
    return require('long')
  }
}

/** Fetches until nothing more comes: where the magic changes, the library leaves the rest to its next fetch. */
async function decode (request, delivered) {
  delivered.push({ records: [] })
  let data = unhexed(request.data)
  let next = 0n
  while (true) {
    const size = Buffer.alloc(4)
    size.writeInt32BE(data.length)
    const found = await decodeMessages(new Decoder(Buffer.concat([size, data])))
    for (const one of found.map(record)) {
      if (next === 0n || BigInt(one.offset) >= next) delivered[0].records.push(one)
    }
    next = delivered[0].records.reduce((most, one) => (BigInt(one.offset) >= most ? BigInt(one.offset) + 1n : most), next)
    const rest = served(data, next)
    if (rest.length === 0 || rest.length === data.length) return { batches: delivered }
    data = rest
  }
}

/**
 * What a broker sends when an offset is asked for: from the first entry that ends there or above. An entry that is not
 * whole is the end of the log, and so are zeros; a size that cannot be is left to the library.
 */
function served (data, offset) {
  while (data.length >= 17) {
    const size = data.readInt32BE(8)
    if (size < 14) return data.every(byte => byte === 0) ? Buffer.alloc(0) : data
    if (data.length < 12 + size) break
    const delta = data[16] >= 2 && size >= 49 ? BigInt(data.readInt32BE(23)) : 0n
    if (data.readBigInt64BE(0) + delta >= offset) return data
    data = data.subarray(12 + size)
  }
  return Buffer.alloc(0)
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
  bytesKeys: false, partialTail: false, errors: ['KafkaJS*', 'Error']
}, { decode, encode })
