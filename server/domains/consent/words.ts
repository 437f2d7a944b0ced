import { normalizeText } from '../../../catalog/text.ts'
import { fold } from '../../../storage/values/text.ts'

/** Whole messages that withdraw the consent to marketing. Nothing that also answers a question, such as "cancel". */
const STOP_WORDS = [
  'stop, stop all, stopall, unsubscribe, opt out, opt-out, optout, stop promotions',
  'stopp, abmelden, abbestellen, keine werbung',
  'arret, arrêt, désabonner, se désabonner, désinscription',
  'baja, darse de baja, darme de baja, cancelar suscripción',
  'sair, parar, descadastrar, cancelar inscrição',
  'disiscriviti, disiscrivimi, annulla iscrizione',
  'afmelden, uitschrijven, wypisz, rezygnuję, avregistrera, afmeld, peru tilaus',
  'стоп, отписаться, відписатися, berhenti, dur, abonelikten çık',
  'توقف, إيقاف, إلغاء الاشتراك, הסר, रोकें, 配信停止, 退订, 退訂, 수신거부',
]

/** Whole messages that take that back. */
const START_WORDS = [
  'start, unstop, subscribe, opt in, opt-in, optin, resume promotions',
  'anmelden, abonnieren, réabonner, s’abonner, alta, darme de alta, suscribirme',
  'inscrever, iscriviti, iscrivimi, aanmelden, inschrijven, zapisz, anmäl',
  'старт, подписаться, підписатися, mulai, başla, اشتراك, הצטרף, शुरू, 配信再開, 订阅, 訂閱, 수신동의',
]

/** Folds a text, and leaves out what is around it: spaces, quotation marks and full stops. */
const normalize = (text: string): string =>
  fold(normalizeText(text, 'NFKC'))
    .replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{M}\p{N}]+$/gu, '')
    .replaceAll(/\s+/gu, ' ')

const toSet = (lines: readonly string[]): ReadonlySet<string> =>
  new Set(lines.flatMap((line) => line.split(',').map(normalize)))
const stopWords = toSet(STOP_WORDS)
const startWords = toSet(START_WORDS)

/** Longer messages are no words: they are not folded. */
const MAX_LENGTH = 60

/** Returns what a message says of the consent to marketing when it is nothing but one of the words. */
export const readConsentWord = (text: string | null): 'granted' | 'withdrawn' | undefined => {
  if (text === null || text.length > MAX_LENGTH) return undefined
  const word = normalize(text)
  if (stopWords.has(word)) return 'withdrawn'
  return startWords.has(word) ? 'granted' : undefined
}
