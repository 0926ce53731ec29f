// Tasks are told as JSON on standard input, and answered as JSON on standard output.
import { readFileSync } from 'node:fs'

export const hexed = part => (part === null || part === undefined ? null : Buffer.from(part).toString('hex'))

const patience = 25000

/** What a task gives, unless the client stands still. */
function inTime (pending) {
  let timer
  const over = new Promise((_resolve, reject) => { timer = setTimeout(() => reject(new Error('it stands still')), patience) })
  return Promise.race([pending, over]).finally(() => clearTimeout(timer))
}

/** Carries out all tasks, a few at a time; an answer is what a task gives, or the words of its error. */
export async function run (carryOut) {
  const told = JSON.parse(readFileSync(0, 'utf8'))
  const answers = []
  const waiting = [...told.tasks.entries()]
  const worker = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [number, task] = next
      try {
        answers[number] = await inTime(carryOut[task.kind](`127.0.0.1:${told.port}`, task))
      } catch (error) {
        answers[number] = [error, error.cause, ...(error.errors ?? [])].filter(Boolean).map(each => each.message).join('; ')
      }
    }
  }
  await Promise.all(Array.from({ length: 16 }, worker))
  process.stdout.write(JSON.stringify(answers), () => process.exit(0))
}
