import { createRequire } from 'node:module'
import { hexed, run } from './tasks.mjs'

const { Kafka, logLevel, Partitioners } = createRequire(import.meta.url)('kafkajs')

const connected = address => new Kafka({ clientId: 'test', brokers: [address], logLevel: logLevel.NOTHING, retry: { retries: 2 } })

/** Records from where the group stands up to an offset; what the consumer crashes on is thrown. */
async function consume (address, { topic, group, last, isolation }) {
  const consumer = connected(address).consumer({
    groupId: group, readUncommitted: isolation !== 'read_committed', maxWaitTimeInMs: 100, rebalanceTimeout: 1000, heartbeatInterval: 300
  })
  const found = []
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const done = new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, event => reject(event.payload.error))
    if (last < 0) resolve()
    consumer.run({
      autoCommit: false,
      eachMessage: async ({ message }) => {
        if (Number(message.offset) <= last) found.push(message)
        if (Number(message.offset) >= last) resolve()
      }
    })
  })
  try {
    await done
    await consumer.commitOffsets([{ topic, partition: 0, offset: String(last + 1) }])
  } finally {
    await consumer.disconnect()
  }
  return found
}

function row (message) {
  const headers = Object.entries(message.headers ?? {}).flatMap(([key, values]) =>
    (Array.isArray(values) ? values : [values]).map(value => [key, hexed(value)]))
  return [Number(message.offset), Number(message.timestamp ?? -1), hexed(message.key), hexed(message.value), headers]
}

run({
  async records (address, task) {
    return (await consume(address, { ...task, group: `${task.topic}-${task.isolation}` })).map(row)
  },
  async lookups (address, task) {
    const admin = connected(address).admin()
    await admin.connect()
    const found = []
    for (const timestamp of task.timestamps) {
      const [{ offset }] = await admin.fetchTopicOffsetsByTimestamp(task.topic, timestamp)
      found.push([null, Number(offset)])
    }
    await admin.disconnect()
    return found
  },
  async group (address, task) {
    const parts = []
    for (const end of task.ends) {
      parts.push((await consume(address, { ...task, last: end - 1 })).map(message => Number(message.offset)))
    }
    return parts
  },
  async produce (address, task) {
    const producer = connected(address).producer({ idempotent: task.idempotent, createPartitioner: Partitioners.DefaultPartitioner })
    await producer.connect()
    const offsets = []
    for (let start = 0; start < task.count; start += 100) {
      const messages = []
      for (let number = start; number < Math.min(start + 100, task.count); number++) messages.push({ value: `${task.prefix}-${number}` })
      const [answer] = await producer.send({ topic: task.topic, acks: -1, messages })
      messages.forEach((_, number) => offsets.push(Number(answer.baseOffset) + number))
    }
    await producer.disconnect()
    return offsets
  }
})
