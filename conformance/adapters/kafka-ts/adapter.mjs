// kafka-ts: decodeRecordBatch of its Fetch response, createBatch of its Produce request.
import { createRequire } from 'node:module'
import { asStored, codecs, hasZstd, hexed, serve, Skip, unhexed, whyUnencodable } from './serving.mjs'

const require = createRequire(import.meta.url)
const { decodeRecordBatch, withDecompressions } = require('kafka-ts/dist/api/fetch/common')
const { createBatch } = require('kafka-ts/dist/api/produce/common')
const { Decoder } = require('kafka-ts/dist/utils/decoder')

/** All batches of a response, or none: the library hands out no part of a response that it cannot read. */
async function decode (request) {
  const data = unhexed(request.data)
  const batches = await withDecompressions(running => decodeRecordBatch(new Decoder(data), data.length, running))
  return { batches: batches.map(batchOf) }
}

/** Offsets and timestamps as its Consumer makes them of what was decoded. */
function batchOf (batch) {
  return {
    magic: batch.magic,
    sizeInBytes: batch.batchLength + 12,
    baseOffset: String(batch.baseOffset),
    lastOffset: String(batch.baseOffset + BigInt(batch.lastOffsetDelta)),
    codec: codecs[batch.compression],
    timestampType: batch.timestampType,
    baseTimestamp: String(batch.baseTimestamp),
    maxTimestamp: String(batch.maxTimestamp),
    deleteHorizonMs: batch.deleteHorizonMs === null ? null : String(batch.deleteHorizonMs),
    producerId: String(batch.producerId),
    producerEpoch: batch.producerEpoch,
    baseSequence: batch.baseSequence,
    isTransactional: batch.isTransactional,
    isControl: batch.isControlBatch,
    partitionLeaderEpoch: batch.partitionLeaderEpoch,
    records: batch.records.map(record => ({
      offset: String(batch.baseOffset + BigInt(record.offsetDelta)),
      timestamp: String(batch.baseTimestamp + record.timestampDelta),
      key: hexed(record.key),
      value: hexed(record.value),
      headers: record.headers.map(header => [hexed(header.key), hexed(header.value)])
    }))
  }
}

async function encode (request) {
  return { data: hexed(Buffer.concat(request.batches.map(batch => asStored(encoded(batch), batch)))) }
}

function encoded (batch) {
  whyUnencodable(batch)
  if ((batch.codec ?? 'none') !== 'none') throw new Skip('it compresses nothing')
  const offset = BigInt(batch.baseOffset ?? 0)
  const times = batch.records.map(record => BigInt(record.timestamp))
  return createBatch({
    baseOffset: offset,
    partitionLeaderEpoch: batch.partitionLeaderEpoch ?? -1,
    attributes: batch.isTransactional ? 16 : 0,
    lastOffsetDelta: Number(BigInt(batch.records.at(-1).offset) - offset),
    baseTimestamp: times[0],
    maxTimestamp: times.reduce((one, other) => (one > other ? one : other)),
    producerId: BigInt(batch.producerId ?? -1),
    producerEpoch: batch.producerEpoch ?? -1,
    baseSequence: batch.baseSequence ?? -1,
    records: batch.records.map((record, number) => ({
      attributes: 0,
      timestampDelta: times[number] - times[0],
      offsetDelta: Number(BigInt(record.offset) - offset),
      key: textOf(record.key),
      value: textOf(record.value),
      headers: (record.headers ?? []).map(([key, value]) => ({ key: textOf(key), value: textOf(value) }))
    }))
  }).value()
}

/** Its encoder takes text for keys, values and headers. */
function textOf (hex) {
  const bytes = unhexed(hex)
  const text = bytes?.toString() ?? null
  if (bytes && !Buffer.from(text).equals(bytes)) throw new Skip('it takes text alone')
  return text
}

serve({
  name: 'kafka-ts', version: require('kafka-ts/package.json').version, language: 'JavaScript',
  homepage: 'https://github.com/priitkaard/kafka-ts', issues: 'https://github.com/priitkaard/kafka-ts/issues'
}, {
  magic: [2], codec: hasZstd ? codecs : codecs.slice(0, 4), crc: false, control: 'surfaced', headers: 'ordered',
  batchMeta: ['magic', 'sizeInBytes', 'baseOffset', 'lastOffset', 'codec', 'timestampType', 'baseTimestamp', 'maxTimestamp',
    'deleteHorizonMs', 'producerId', 'producerEpoch', 'baseSequence', 'isTransactional', 'isControl', 'partitionLeaderEpoch'],
  bytesKeys: false, partialTail: false, errors: ['KafkaTS*', 'Error'] // it throws plain errors for codecs, as zlib does
}, { decode, encode })
