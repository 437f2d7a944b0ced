import type { Address, Servers } from './addresses.ts'
import { codedError } from './error-codes.ts'
import { waitAtMost } from './wait-at-most.ts'

/** Asks the server at an address, over a connection of its own, whether it takes changes. */
export type AskServer = (address: Address) => Promise<{ isPrimary: boolean }>

export type ServerFinder = {
  /** Returns the address of a server in the wanted role; rejects when none answers that it is. */
  find: () => Promise<Address>
  /** Whether another server has taken the place of the one at this address, which has fallen silent. */
  isReplaced: (address: Address) => Promise<boolean>
}

const ANSWER_MS = 2_000

/**
 * Finds among the servers of a cluster the one that sessions are for. All are asked at the same time, and the
 * first that fits is taken, so that one which is down costs nothing. Connections that open together share the
 * question.
 */
export const createServerFinder = ({ addresses, role }: Servers, ask: AskServer): ServerFinder => {
  const asked = new Map<Address, Promise<boolean | undefined>>()

  /** Undefined when it does not answer. */
  const isPrimary = (address: Address): Promise<boolean | undefined> => {
    const running = asked.get(address)
    if (running) return running
    const answer = askInTime(ask, address).finally(() => asked.delete(address))
    asked.set(address, answer)
    return answer
  }
  const isIn = async (wanted: 'primary' | 'standby', address: Address): Promise<boolean> =>
    (await isPrimary(address)) === (wanted === 'primary')
  const findIn = (wanted: 'primary' | 'standby'): Promise<Address> =>
    Promise.any(
      addresses.map(async (address) => {
        if (await isIn(wanted, address)) return address
        throw new Error('not in this role')
      }),
    )
  const find = async (): Promise<Address> => {
    try {
      if (role !== 'prefer-standby') return await findIn(role === 'standby' ? 'standby' : 'primary')
      return await findIn('standby').catch(() => findIn('primary'))
    } catch {
      const wanted = role === 'primary' ? 'primary server' : 'standby'
      throw codedError('NO_SERVER', `none of the addresses of the database answers as its ${wanted}`)
    }
  }
  const isReplaced = async (address: Address): Promise<boolean> => {
    const other = await find().catch(() => address)
    if (other === address) return false
    // There is one primary server, but there may be several standbys.
    return role === 'primary' || (await isPrimary(address)) === undefined
  }
  return { find, isReplaced }
}

const askInTime = async (ask: AskServer, address: Address): Promise<boolean | undefined> => {
  let answer: boolean | undefined
  const asked = ask(address).then(
    ({ isPrimary }) => {
      answer = isPrimary
    },
    () => {},
  )
  await waitAtMost(ANSWER_MS, asked)
  return answer
}
