// What whole clients have in common, which send the records of a case to the endpoint of the suite.
import { unhexed } from './serving.mjs'

export const waitMilliseconds = 8000

/**
 * Have the records of each batch sent under a codec. What was sent is seen, and told, by the endpoint.
 * `send` gets the name of the codec and records with bytes, and ends when they have arrived.
 */
export async function produced (request, send) {
  for (const batch of request.batches) {
    await send(batch.codec ?? 'none', batch.records.map(record => ({
      key: unhexed(record.key),
      value: unhexed(record.value),
      timestamp: record.timestamp ?? '-1',
      headers: (record.headers ?? []).map(([key, value]) => [unhexed(key), unhexed(value)])
    })))
  }
  return {}
}
