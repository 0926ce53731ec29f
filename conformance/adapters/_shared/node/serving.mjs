// The line protocol. Load this before the library: what the library prints goes to standard error.
import { createInterface } from 'node:readline'
import { writeSync } from 'node:fs'
import zlib from 'node:zlib'

console.log = console.info = console.debug = console.error
process.stdout.write = process.stderr.write.bind(process.stderr)

export const codecs = ['none', 'gzip', 'snappy', 'lz4', 'zstd']
export const hasZstd = typeof zlib.zstdDecompressSync === 'function'

/** There is no way to ask the library for this. */
export class Skip extends Error {}

export const hexed = bytes => (bytes === null || bytes === undefined ? null : Buffer.from(bytes).toString('hex'))
export const unhexed = text => (text === null || text === undefined ? null : Buffer.from(text, 'hex'))

/** What producers never write, and their encoders cannot be asked for. */
export function whyUnencodable (batch) {
  const last = batch.records.at(-1)?.offset
  if (batch.isControl) throw new Skip('its encoder knows no control batches')
  if (batch.timestampType === 'LogAppendTime') throw new Skip('its encoder knows no time of the append')
  if (batch.deleteHorizonMs != null) throw new Skip('its encoder knows no delete horizon')
  if (last === undefined) throw new Skip('its encoder knows no empty batches')
  if (String(batch.lastOffset ?? last) !== String(last)) throw new Skip('a last offset without a record')
  if ((batch.magic ?? 2) !== 2) throw new Skip('only batches of magic 2 are asked for')
}

/** Base offset and leader epoch, which a broker fills in after a producer has encoded; no checksum covers them. */
export function asStored (data, batch) {
  const stored = Buffer.from(data)
  stored.writeBigInt64BE(BigInt(batch.baseOffset ?? 0), 0)
  stored.writeInt32BE(batch.partitionLeaderEpoch ?? -1, 12)
  return stored
}

const kinds = [['crc', 'crc'], ['compress', 'compression'], ['codec', 'compression'], ['zlib', 'compression'],
  ['magic', 'magic'], ['varint', 'varint'], ['length', 'length'], ['range', 'length'], ['bounds', 'length']]

function rejected (error) {
  const text = `${error.name ?? 'Error'}: ${error.message ?? error}`
  const kind = kinds.find(([word]) => text.toLowerCase().includes(word))
  return { class: kind ? kind[1] : 'other', message: text.slice(0, 300), error: error.constructor?.name ?? 'Error' }
}

/** An exception whose stack names no file of the library is a fault of the adapter, unless a client has reported it. */
const isFromLibrary = error => error?.isReported || String(error?.stack).includes('node_modules') || error?.code?.startsWith?.('Z_')

async function answer (operation, request) {
  const delivered = []
  try {
    return { ok: true, ...(await operation(request, delivered)) }
  } catch (error) {
    if (error instanceof Skip) return { skip: { reason: error.message } }
    if (!isFromLibrary(error)) return { error: { message: String(error?.stack ?? error).slice(0, 500) } }
    return { ok: false, reject: rejected(error), ...(request.op === 'decode' ? { batches: delivered } : {}) }
  }
}

/** Answer requests until there are no more. */
export async function serve (implementation, features, operations) {
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line)
    if (request.op === 'stop') break
    let found = { ok: true, protocol: 1, implementation, ops: Object.keys(operations), features }
    if (request.op !== 'hello') {
      const operation = operations[request.op]
      found = operation ? await answer(operation, request) : { skip: { feature: `op:${request.op}` } }
    }
    const text = Buffer.from(JSON.stringify({ seq: request.seq, ...found }) + '\n')
    for (let at = 0; at < text.length;) {
      try {
        at += writeSync(1, text, at)
      } catch (error) {
        if (error.code !== 'EAGAIN') throw error
      }
    }
  }
  process.exit(0)
}
