// What whole clients have in common, which fetch a case from the endpoint of the suite.
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export const fetchMilliseconds = 50
export const mostSize = 1 << 26
const quietMilliseconds = 20

/** What a client reports of its own accord; `happens` is called with how to report. */
export function failure (happens) {
  const failed = new Promise((_resolve, reject) => happens(error => reject(Object.assign(error, { isReported: true }))))
  failed.catch(() => {})
  return failed
}

/**
 * Wait until a client has handed out everything, or failed. When it has asked for what follows the last record, or for
 * the same offset again and again, a file appears; what it hands out after that was in its buffers.
 */
export async function consumed (place, records, failed) {
  let count = -1
  for (let isEnded = false; !isEnded || records.length > count;) {
    isEnded = existsSync(place.ended)
    count = records.length
    await Promise.race([failed, sleep(quietMilliseconds)])
  }
}
