import type { Problem } from '../../kernel/problem.ts'
import { includesCode, type ProviderCodes } from '../../provider/codes.ts'
import { providerCodeOf } from '../../provider/port.ts'

/**
 * What a problem at the provider means for a channel. `limited`: it passes by itself. `restricted`: some
 * messages are refused, or all for a while; sends are still tried. `disconnected`: nothing can be sent until
 * somebody acts, so that sends are refused at once.
 */
type ProblemStatus = 'limited' | 'restricted' | 'disconnected'

type HealthRule = {
  codes: ProviderCodes
  status: ProblemStatus
  reason: string
  /** Whose problem it is: of all numbers of the account, or of the one that sent. */
  of: 'account' | 'number'
  /** After so many seconds it counts as passed, where the provider does not say when; absent: never. */
  seconds?: number
  /** A message that is accepted shows that it is over. */
  endsWithSend: boolean
  /** Only in answers to sends: elsewhere the code says nothing about sending. */
  sendsOnly?: true
}

const HOUR = 3600

/**
 * What the provider's error codes say about channels (reference: its list of error codes). Codes that concern
 * one message or customer are not here.
 */
const healthRules: readonly HealthRule[] = [
  { codes: [0, 190], status: 'disconnected', reason: 'token_revoked', of: 'account', endsWithSend: true },
  {
    codes: [3, 10, [200, 299], 131005],
    status: 'disconnected',
    reason: 'permission_missing',
    of: 'number',
    endsWithSend: true,
    sendsOnly: true,
  },
  { codes: [131031], status: 'restricted', reason: 'account_locked', of: 'account', endsWithSend: true },
  { codes: [368], status: 'restricted', reason: 'policy_block', of: 'account', endsWithSend: true },
  {
    codes: [131064],
    status: 'restricted',
    reason: 'classification_limit',
    of: 'account',
    endsWithSend: true,
  },
  // Of one country: a message to another one says nothing about it.
  {
    codes: [130497],
    status: 'restricted',
    reason: 'country_blocked',
    of: 'account',
    seconds: HOUR,
    endsWithSend: false,
  },
  { codes: [131042], status: 'restricted', reason: 'payment_missing', of: 'account', endsWithSend: true },
  {
    codes: [131037, 131045, 133000, 133006, 133008, 133009, 133010, 133015, 134011],
    status: 'restricted',
    reason: 'setup_incomplete',
    of: 'number',
    endsWithSend: true,
  },
  {
    codes: [131048],
    status: 'limited',
    reason: 'spam_rate_limit',
    of: 'number',
    seconds: HOUR,
    endsWithSend: false,
  },
  {
    codes: [130429],
    status: 'limited',
    reason: 'throughput',
    of: 'number',
    seconds: 60,
    endsWithSend: false,
  },
  { codes: [131056], status: 'limited', reason: 'pair_rate', of: 'number', seconds: 60, endsWithSend: false },
  {
    codes: [4, 17, 32, 613, 80004, 80007, 80008],
    status: 'limited',
    reason: 'api_rate_limit',
    of: 'account',
    seconds: 60,
    endsWithSend: false,
  },
]

/** A problem of a channel. `seconds`: after which it counts as passed; null when that is not known. */
export type ChannelProblem = {
  status: ProblemStatus
  reason: string
  code: number | null
  seconds: number | null
}

/** A limit is shown for at least this long, so that a busy number does not change with each message. */
const MIN_LIMIT_SECONDS = 60

/**
 * Returns what a code of the provider says about channels, and about which; undefined when it says nothing.
 * `retryAfter`: seconds that the provider asked to wait.
 */
export const readErrorCode = (
  code: number,
  { isSend, retryAfter }: { isSend: boolean; retryAfter?: number | undefined },
): { problem: ChannelProblem; of: HealthRule['of'] } | undefined => {
  const rule = healthRules.find(({ codes, sendsOnly }) => includesCode(codes, code) && (isSend || !sendsOnly))
  if (!rule) return undefined
  const seconds = rule.seconds === undefined ? null : Math.max(retryAfter ?? rule.seconds, MIN_LIMIT_SECONDS)
  return { problem: { status: rule.status, reason: rule.reason, code, seconds }, of: rule.of }
}

/** The same for a problem of a call. */
export const readCallProblem = (problem: Problem, isSend: boolean): ReturnType<typeof readErrorCode> => {
  const code = providerCodeOf(problem)
  if (code === undefined) return undefined
  const retryAfter = Number(problem.headers['Retry-After'])
  return readErrorCode(code, { isSend, ...(retryAfter > 0 ? { retryAfter } : {}) })
}

/** The reasons that an accepted message disproves. */
export const reasonsEndedBySend: readonly string[] = healthRules
  .filter(({ endsWithSend }) => endsWithSend)
  .map(({ reason }) => reason)

/** Those of them that are of the whole account, whichever of its numbers the message was from. */
export const accountReasonsEndedBySend: readonly string[] = healthRules
  .filter(({ endsWithSend, of }) => endsWithSend && of === 'account')
  .map(({ reason }) => reason)

/** The reasons that any successful call disproves: the token is good. */
export const reasonsEndedByCall: readonly string[] = ['token_revoked']

/** Phone number states of the provider that stop sending, with the status that channels get. */
export const numberStates: Readonly<
  Record<string, { status: 'disconnected' | 'inactive'; reason: string } | 'connected'>
> = {
  CONNECTED: 'connected',
  DISCONNECTED: { status: 'disconnected', reason: 'number_disconnected' },
  UNLINKED: { status: 'disconnected', reason: 'number_disconnected' },
  BANNED: { status: 'disconnected', reason: 'number_banned' },
  RESTRICTED: { status: 'disconnected', reason: 'number_restricted' },
  PENDING: { status: 'inactive', reason: 'number_pending' },
  DELETED: { status: 'inactive', reason: 'number_deleted' },
  MIGRATED: { status: 'inactive', reason: 'number_migrated' },
}

/** The reasons that the state of a number gives, which its state `CONNECTED` disproves. */
export const numberStateReasons: readonly string[] = [
  ...new Set(Object.values(numberStates).flatMap((state) => (state === 'connected' ? [] : [state.reason]))),
]

/** What people read about each reason, and what to do. */
export const reasonTexts: Readonly<Record<string, string>> = {
  token_revoked: 'the provider refuses the access token; an administrator must renew it',
  permission_missing: 'the access token lacks a permission to send; an administrator must grant it',
  account_locked: 'the provider has locked the business account',
  account_banned: 'the provider has disabled the business account',
  account_removed: 'the business account was deleted, or the app was removed from it',
  account_restricted: 'the provider has restricted the business account',
  policy_block: 'the provider blocks the business account for a violation of its policies',
  classification_limit: 'the provider limits the business account by its classification',
  country_blocked: 'the business account may not write to customers in some country',
  payment_missing: 'the payment method of the business account is missing or refused',
  setup_incomplete: 'the number is not fully set up at the provider',
  spam_rate_limit: 'the provider limits the number, because customers blocked or reported it',
  throughput: 'too many messages in a short time; the provider accepts fewer',
  pair_rate: 'too many messages to one customer in a short time',
  api_rate_limit: 'too many calls to the provider; it accepts no more for the moment',
  number_disconnected: 'the number is not connected at the provider',
  number_banned: 'the provider has banned the number',
  number_restricted: 'the provider has restricted the number',
  number_pending: 'the number is not active at the provider yet',
  number_deleted: 'the number was deleted at the provider',
  number_migrated: 'the number was moved to another account at the provider',
}
