import { isIPv6 } from 'node:net'

const failureByCode: Readonly<Record<string, string>> = {
  ADDRESS_REFUSED: 'The address is not public.',
  ECONNREFUSED: 'The connection was refused.',
  ECONNRESET: 'The connection was closed before a response.',
  UND_ERR_SOCKET: 'The connection was closed before a response.',
  EPIPE: 'The connection was closed before a response.',
  ENOTFOUND: 'The name does not resolve.',
  EAI_AGAIN: 'The name could not be resolved.',
  EHOSTUNREACH: 'The host cannot be reached.',
  ENETUNREACH: 'The network cannot be reached.',
  ETIMEDOUT: 'The connection took too long.',
  UND_ERR_CONNECT_TIMEOUT: 'The connection took too long.',
  UND_ERR_HEADERS_TIMEOUT: 'No response within 15 seconds.',
  UND_ERR_HEADERS_OVERFLOW: 'The headers of the response are too long.',
}

/** What this machine can lack for a connection; nothing was sent then. */
const lackByCode: Readonly<Record<string, string>> = {
  ENETUNREACH: 'This server has no network route to the address.',
  EADDRNOTAVAIL: 'This server has no free address or port to connect from.',
  EMFILE: 'This server has too many open files.',
  ENFILE: 'This server has too many open files.',
  ENOBUFS: 'This server has too little memory to connect.',
  ENOMEM: 'This server has too little memory to connect.',
}

/** Why a request had no response. `ours`: through a fault of this installation, which tells nothing of the receiver. */
export type Failure = { text: string; ours: boolean }

type RequestError = {
  name?: string
  code?: string
  message?: string
  /** The address of a connection. */
  address?: string
  /** The errors of all addresses of a name that were tried. */
  errors?: RequestError[]
  /** Of an error of `ResolveHost`. */
  isResolverDown?: boolean
}

/**
 * Whether this machine refused to connect. Node says so in the text alone. It matters because a router on the way can
 * report the same code about the receiver's network.
 */
const isRefusedHere = ({ code = '', message = '' }: RequestError): boolean =>
  code in lackByCode && message.includes(' - Local (')

/** Many networks have no IPv6: it is for the receiver to have an address that they reach as well. */
const isOurLack = (error: RequestError): boolean =>
  isRefusedHere(error) &&
  !(isIPv6(error.address ?? '') && (error.code === 'ENETUNREACH' || error.code === 'EADDRNOTAVAIL'))

/** Ends every explanation of a fault of ours, so that nobody looks for it at the receiver. */
const toOurs = (text: string): Failure => ({
  text: `${text} The cause is this server, not the receiver.`,
  ours: true,
})

/** Explains an error in fixed words: its own text can name addresses of this network. */
export const explainFailure = (error: unknown): Failure => {
  const { name, message, isResolverDown, errors = [error as RequestError] } = error as RequestError
  if (name === 'TimeoutError' || name === 'AbortError')
    return { text: 'No response within 15 seconds.', ours: false }
  if (message?.includes('WCRM_SECRET'))
    return toOurs('The signing secret or the headers were encrypted with another WCRM_SECRET.')
  if (isResolverDown === true) return toOurs('No DNS server responds to this server.')
  // Where one address got an answer of any kind, the others say nothing of the outcome.
  const abroad = errors.find((each) => !isRefusedHere(each))
  const ours = errors.find(isOurLack)
  if (!abroad && ours) return toOurs(lackByCode[ours.code!]!)
  const { code } = abroad ?? (error as RequestError)
  const text =
    (code !== undefined && failureByCode[code]) ||
    (code?.startsWith('HPE_') ? 'The answer is not HTTP.' : `It could not be sent (${code ?? 'unknown'}).`)
  return { text, ours: false }
}

/** What happened to a delivery whose event was deleted, such as by a restore of an older backup. */
export const EVENT_DELETED = toOurs('The event is no longer kept.')
