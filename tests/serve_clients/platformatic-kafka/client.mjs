import { hexed, run } from './tasks.mjs'

/** The library needs it; Node has it since 22. */
Promise.withResolvers ??= function () {
  const made = {}
  made.promise = new this((resolve, reject) => Object.assign(made, { resolve, reject }))
  return made
}
const { Consumer, Producer } = await import('@platformatic/kafka')

const READ_UNCOMMITTED = 0
const READ_COMMITTED = 1

const connected = (address, groupId) => new Consumer({
  clientId: 'test', groupId, bootstrapBrokers: [address], retries: 1, maxWaitTime: 100, sessionTimeout: 10000, heartbeatInterval: 1000, rebalanceTimeout: 10000
})

async function consume (address, { topic, group, last, isolation }, mode) {
  const consumer = connected(address, group)
  const found = []
  try {
    if (last < 0) return found
    const stream = await consumer.consume({
      topics: [topic], mode, fallbackMode: 'earliest', autocommit: false,
      isolationLevel: isolation === 'read_committed' ? READ_COMMITTED : READ_UNCOMMITTED
    })
    for await (const message of stream) {
      found.push(message)
      if (Number(message.offset) >= last) {
        if (mode === 'committed') await message.commit()
        break
      }
    }
    return found
  } finally {
    await consumer.close(true)
  }
}

function row (message) {
  const headers = [...message.headers].map(([key, value]) => [key.toString(), hexed(value)])
  return [Number(message.offset), Number(message.timestamp), hexed(message.key), hexed(message.value), headers]
}

run({
  async records (address, task) {
    return (await consume(address, { ...task, group: `${task.topic}-${task.isolation}-p` }, 'earliest')).map(row)
  },
  async lookups (address, task) {
    const consumer = connected(address, `${task.topic}-lookups`)
    const found = []
    for (const timestamp of task.timestamps) {
      const offsets = await consumer.listOffsetsWithTimestamps({ topics: [task.topic], timestamp: BigInt(timestamp) })
      const { offset, timestamp: at } = offsets.get(task.topic).get(0)
      found.push(offset < 0n ? null : [Number(at), Number(offset)])
    }
    await consumer.close(true)
    return found
  },
  async group (address, task) {
    const parts = []
    for (const end of task.ends) {
      parts.push((await consume(address, { ...task, last: end - 1 }, 'committed')).map(message => Number(message.offset)))
    }
    return parts
  },
  async produce (address, task) {
    const producer = new Producer({ clientId: 'test', bootstrapBrokers: [address], idempotent: task.idempotent, acks: -1 })
    const offsets = []
    for (let start = 0; start < task.count; start += 100) {
      const messages = []
      for (let number = start; number < Math.min(start + 100, task.count); number++) {
        messages.push({ topic: task.topic, partition: 0, value: Buffer.from(`${task.prefix}-${number}`) })
      }
      const answer = await producer.send({ messages })
      messages.forEach((_, number) => offsets.push(Number(answer.offsets[0].offset) + number))
    }
    await producer.close()
    return offsets
  }
})
