// @platformatic/kafka: readRecordsBatches of its Fetch response, createRecordsBatch of its Produce request.
import { readFileSync } from 'node:fs'
import { asStored, codecs, hasZstd, hexed, serve, Skip, unhexed, whyUnencodable } from './serving.mjs'

const library = new URL('./node_modules/@platformatic/kafka/', import.meta.url)
const { Reader } = await import(new URL('dist/protocol/reader.js', library))
const { createRecordsBatch, readRecordsBatch, BATCH_HEAD = 12 } = await import(new URL('dist/protocol/records.js', library))

/** Batch by batch as `readRecordsBatches` does it, so that what came before a refusal is known. */
async function decode (request, delivered) {
  const reader = Reader.from(unhexed(request.data))
  if (!(reader.remaining >= 0)) throw new Error('releases before 1.20 have another reader')
  while (reader.remaining >= BATCH_HEAD && reader.remaining - BATCH_HEAD >= reader.peekInt32(reader.position + 8)) {
    delivered.push(batchOf(readRecordsBatch(reader)))
  }
  return { batches: delivered }
}

function batchOf (batch) {
  return {
    magic: batch.magic,
    baseOffset: String(batch.firstOffset),
    lastOffset: String(batch.firstOffset + BigInt(batch.lastOffsetDelta)),
    codec: codecs[batch.attributes & 7],
    baseTimestamp: String(batch.firstTimestamp),
    maxTimestamp: String(batch.maxTimestamp),
    producerId: String(batch.producerId),
    producerEpoch: batch.producerEpoch,
    baseSequence: batch.firstSequence,
    isTransactional: (batch.attributes & 16) !== 0,
    isControl: (batch.attributes & 32) !== 0,
    partitionLeaderEpoch: batch.partitionLeaderEpoch,
    records: batch.records.map(record => ({
      offset: String(batch.firstOffset + BigInt(record.offsetDelta)),
      timestamp: String(batch.firstTimestamp + record.timestampDelta),
      key: hexed(record.key),
      value: hexed(record.value),
      headers: record.headers.map(([key, value]) => [hexed(key), hexed(value)])
    }))
  }
}

async function encode (request) {
  return { data: hexed(Buffer.concat(request.batches.map(batch => asStored(encoded(batch), batch)))) }
}

function encoded (batch) {
  whyUnencodable(batch)
  const base = BigInt(batch.baseOffset ?? 0)
  const messages = batch.records.map((record, number) => {
    if (BigInt(record.offset) !== base + BigInt(number)) throw new Skip('its encoder counts offsets')
    const headers = new Map((record.headers ?? []).map(([key, value]) => [unhexed(key), unhexed(value)]))
    return { topic: 't', partition: 0, key: unhexed(record.key), value: unhexed(record.value), headers, timestamp: BigInt(record.timestamp) }
  })
  const sequences = (batch.producerId ?? '-1') === '-1' ? undefined : { getWithDefault: () => batch.baseSequence }
  return createRecordsBatch(messages, {
    compression: batch.codec ?? 'none',
    transactionalId: batch.isTransactional ? 't' : undefined,
    producerId: BigInt(batch.producerId ?? -1),
    producerEpoch: sequences ? batch.producerEpoch : undefined,
    sequences
  }).buffer
}

serve({
  name: '@platformatic/kafka', version: JSON.parse(readFileSync(new URL('package.json', library))).version, language: 'JavaScript',
  homepage: 'https://github.com/platformatic/kafka', issues: 'https://github.com/platformatic/kafka/issues'
}, {
  magic: [2], codec: hasZstd ? codecs : codecs.slice(0, 4), crc: false, control: 'surfaced', headers: 'ordered',
  batchMeta: ['magic', 'baseOffset', 'lastOffset', 'codec', 'baseTimestamp', 'maxTimestamp', 'producerId', 'producerEpoch',
    'baseSequence', 'isTransactional', 'isControl', 'partitionLeaderEpoch'],
  bytesKeys: true, partialTail: false, errors: ['Error', 'OutOfBoundsError', 'UnsupportedCompressionError']
}, { decode, encode })
