import { AsyncLocalStorage } from 'node:async_hooks'
import { codedError } from './error-codes.ts'

/** Whether the client that waits for some work is still there. */
export type ClientPresence = {
  readonly isGone: () => boolean
  /** Calls the listener when the client goes, once at most. Returns the function that takes it off again. */
  readonly onGone: (listener: () => void) => () => void
  /** Takes note that it has a valid key: its connection is not closed to make room for others. */
  readonly admit: () => void
}

const CLIENT_GONE = 'CLIENT_GONE'

/**
 * Whom the statements of a read are for. Only reads run in it: their statements are not sent once the client is gone,
 * and a change is carried out whatever becomes of its client. Work that several calls share must not run in it.
 */
const reader = new AsyncLocalStorage<ClientPresence>()

/** Runs a read for a client. */
export const readFor = <T>(client: ClientPresence | undefined, read: () => Promise<T>): Promise<T> =>
  client ? reader.run(client, read) : read()

/** Whom the current statement is for; undefined for one that is sent in any case. */
export const getReader = (): ClientPresence | undefined => reader.getStore()

export const clientGoneError = (): Error => codedError(CLIENT_GONE, 'the client is gone')

/** Whether a read was given up since nobody waits for it. */
export const isClientGone = (error: unknown): boolean => (error as { code?: unknown }).code === CLIENT_GONE
