import { parsePhone } from '../../contacts/phone.ts'
import { type Button, fine, type Finding, found, type Rule, type Subject } from './rule.ts'
import { excess, isBlank, lengthOf, quote, suggest } from './text.ts'
import { fixedPart, hostOf, isDynamic, isHttpsUrl, sampleUrl } from './urls.ts'

const LONGEST_URL = 2000
const LONGEST_PHONE = 20
/**
 * The provider is given the number as it is written, so what we read ourselves, such as "00" for "+", is
 * too much for it.
 */
const PHONE_FORM = /^\+?[1-9][0-9 ()./-]*$/
const LONGEST_COUPON = 20
/** Longer ones pass in a template, but no send may have them (reference 2.3). */
const LONGEST_SENT_COUPON = 15

const on =
  (type: Button['type'], find: (button: Button, path: string) => Finding[]) =>
  ({ buttons }: Subject): Finding[] =>
    buttons.flatMap(({ path, button }) => (button.type === type ? find(button, path) : fine))

const onUrl = (find: (url: string, path: string, button: Button) => Finding[]) =>
  on('URL', (button, path) => (isBlank(button.url) ? fine : find(button.url!, path, button)))

const onCoupon = (find: (code: string, path: string) => Finding[]) =>
  on('COPY_CODE', (button, path) =>
    isBlank(button.coupon_code) ? fine : find(button.coupon_code!, `${path}.coupon_code`),
  )

const url = (address: string, more: object = {}) => ({
  set: { buttons: [{ type: 'URL', text: 'Shop', url: address, ...more }] },
})
const phone = (number: string | undefined) => ({
  set: {
    buttons: [
      { type: 'PHONE_NUMBER', text: 'Call', ...(number === undefined ? {} : { phone_number: number }) },
    ],
  },
})
const coupon = (code: string | undefined) => ({
  set: { buttons: [{ type: 'COPY_CODE', ...(code === undefined ? {} : { coupon_code: code }) }] },
})
const flow = (more: object) => ({ set: { buttons: [{ type: 'FLOW', text: 'Book', ...more }] } })

const urlRules: readonly Rule[] = [
  {
    id: 'buttons.url_required',
    severity: 'error',
    about: 'A URL button has a URL.',
    find: on('URL', (button, path) =>
      isBlank(button.url)
        ? found(`${path}.url`, 'The URL button has no URL.', 'Give the https address that it opens.')
        : fine,
    ),
    breaks: { ...url(''), at: 'buttons[0].url' },
    passes: url('https://shop.example'),
  },
  {
    id: 'buttons.url_length',
    severity: 'error',
    about: `At most ${LONGEST_URL} characters.`,
    find: onUrl((address, path) => {
      const over = excess(address, LONGEST_URL)
      return over === 0
        ? fine
        : found(
            `${path}.url`,
            `The URL has ${LONGEST_URL + over} characters; the provider takes ${LONGEST_URL}.`,
            `Shorten it by ${over}.`,
          )
    }),
    breaks: { ...url(`https://shop.example/${'x'.repeat(1980)}`), at: 'buttons[0].url' },
    passes: url(`https://shop.example/${'x'.repeat(1979)}`),
  },
  {
    id: 'buttons.url_form',
    severity: 'error',
    about: 'An absolute https URL with a host and without spaces.',
    find: onUrl((address, path) =>
      isHttpsUrl(sampleUrl(address))
        ? fine
        : found(
            `${path}.url`,
            `${quote(address)} is not an https URL.`,
            suggest(
              httpsOf(address),
              'Write a whole address such as "https://shop.example/orders", with special characters percent-encoded.',
            ),
          ),
    ),
    breaks: { ...url('www.shop.example'), at: 'buttons[0].url' },
    passes: url('https://www.shop.example'),
  },
  {
    id: 'buttons.url_variable',
    severity: 'error',
    about: 'At most one variable, `{{1}}`, at the very end.',
    find: onUrl((address, path, button) =>
      !isDynamic(address) || fixedPart(button) !== undefined
        ? fine
        : found(
            `${path}.url`,
            `The URL ${quote(address)} has a variable that is not one {{1}} at its end.`,
            suggest(movedToEnd(address), 'Keep one {{1}}, at the very end.'),
          ),
    ),
    breaks: {
      ...url('https://shop.example/{{1}}/status', { url_example: 'https://shop.example/17/status' }),
      at: 'buttons[0].url',
    },
    passes: url('https://shop.example/status/{{1}}', { url_example: 'https://shop.example/status/17' }),
  },
  {
    id: 'buttons.url_chat_link',
    severity: 'error',
    about: 'No link into the messaging app itself (`wa.me`, `api.whatsapp.com`).',
    find: onUrl((address, path) => {
      const host = hostOf(address)
      return host === 'wa.me' || host === 'api.whatsapp.com'
        ? found(
            `${path}.url`,
            `The URL leads to ${host}, a link into the messaging app itself.`,
            'Lead to a page of your own, or use a quick reply.',
          )
        : fine
    }),
    breaks: { ...url('https://wa.me/15550100001'), at: 'buttons[0].url' },
    passes: url('https://shop.example/wa.me'),
  },
  {
    id: 'buttons.url_example_missing',
    severity: 'error',
    about: 'A URL with a variable has an example of the whole address.',
    find: on('URL', (button, path) => {
      const fixed = fixedPart(button)
      return fixed === undefined || !isBlank(button.url_example)
        ? fine
        : found(
            `${path}.url_example`,
            'The URL has a variable and no example.',
            suggest(exampleOf(fixed), 'Write the whole address with the variable filled.'),
          )
    }),
    breaks: { ...url('https://shop.example/{{1}}'), at: 'buttons[0].url_example' },
    passes: url('https://shop.example/{{1}}', { url_example: 'https://shop.example/17' }),
  },
  {
    id: 'buttons.url_example_form',
    severity: 'error',
    about: 'The example is an https URL that begins as the URL does, and goes on.',
    find: on('URL', (button, path) => {
      const fixed = fixedPart(button)
      const example = button.url_example
      if (
        fixed === undefined ||
        isBlank(example) ||
        (isHttpsUrl(example!) && example!.startsWith(fixed) && example!.length > fixed.length)
      )
        return fine
      return found(
        `${path}.url_example`,
        `${quote(example!)} is not the URL with its variable filled.`,
        suggest(exampleOf(fixed, example), 'Write the whole address with the variable filled.'),
      )
    }),
    breaks: { ...url('https://shop.example/{{1}}', { url_example: '17' }), at: 'buttons[0].url_example' },
    passes: url('https://shop.example/{{1}}', { url_example: 'https://shop.example/17' }),
  },
]

/** The address with https, where that is all it lacks. */
const httpsOf = (address: string): string => {
  const mended = `https://${address.trim().replace(/^(?:https?:)?\/*/i, '')}`
  return /^[a-z][\w+.-]*:\/\//i.test(address.trim()) && !/^https?:/i.test(address.trim())
    ? ''
    : isHttpsUrl(sampleUrl(mended)) && hostOf(mended).includes('.')
      ? mended
      : ''
}

/** An example of an address: with what was given, where that may be its end. */
const exampleOf = (fixed: string, given = ''): string => {
  const example = fixed + (/^[\w.~%-]+$/.test(given) ? given : '17')
  return isHttpsUrl(example) ? example : ''
}

/** The address with its variable last. */
const movedToEnd = (address: string): string => {
  const rest = address.replaceAll(/\/?\{\{[^{}]*\}\}/g, '').replaceAll(/\{\{|\}\}/g, '')
  return isHttpsUrl(rest) ? `${rest}${/[=/]$/.test(rest) ? '' : '/'}{{1}}` : ''
}

const otherRules: readonly Rule[] = [
  {
    id: 'buttons.phone_required',
    severity: 'error',
    about: 'A PHONE_NUMBER button has a number.',
    find: on('PHONE_NUMBER', (button, path) =>
      isBlank(button.phone_number)
        ? found(
            `${path}.phone_number`,
            'The PHONE_NUMBER button has no number.',
            'Give it with its country code, such as "+15550100001".',
          )
        : fine,
    ),
    breaks: { ...phone(undefined), at: 'buttons[0].phone_number' },
    passes: phone('+15550100001'),
  },
  {
    id: 'buttons.phone_form',
    severity: 'error',
    about: `An international phone number of at most ${LONGEST_PHONE} characters.`,
    find: on('PHONE_NUMBER', ({ phone_number: given }, path) => {
      if (isBlank(given)) return fine
      const parsed = parsePhone(given!)
      if ('fault' in parsed)
        return found(`${path}.phone_number`, `${quote(given!)} ${parsed.fault}.`, parsed.fix)
      if (!PHONE_FORM.test(given!))
        return found(
          `${path}.phone_number`,
          `${quote(given!)} is not written as an international number.`,
          `Write "+${parsed.digits}".`,
        )
      return lengthOf(given!) <= LONGEST_PHONE
        ? fine
        : found(
            `${path}.phone_number`,
            `The number has ${lengthOf(given!)} characters; the provider takes ${LONGEST_PHONE}.`,
            `Write "+${parsed.digits}".`,
          )
    }),
    breaks: { ...phone('030 1234567'), at: 'buttons[0].phone_number' },
    passes: phone('+49 30 1234567'),
  },
  {
    id: 'buttons.coupon_required',
    severity: 'error',
    about: 'A COPY_CODE button has a sample code.',
    find: on('COPY_CODE', (button, path) =>
      isBlank(button.coupon_code)
        ? found(
            `${path}.coupon_code`,
            'The COPY_CODE button has no sample code.',
            'Give one in coupon_code, such as "SPRING25".',
          )
        : fine,
    ),
    breaks: { ...coupon(undefined), at: 'buttons[0].coupon_code' },
    passes: coupon('SPRING25'),
  },
  {
    id: 'buttons.coupon_length',
    severity: 'error',
    about: `At most ${LONGEST_COUPON} characters.`,
    find: onCoupon((code, path) => {
      const over = excess(code, LONGEST_COUPON)
      return over === 0
        ? fine
        : found(
            path,
            `The code has ${LONGEST_COUPON + over} characters; the provider takes ${LONGEST_COUPON}.`,
            `Shorten it by ${over}.`,
          )
    }),
    breaks: { ...coupon('SPRING25SPRING25SPRING'), at: 'buttons[0].coupon_code' },
    passes: coupon('SPRING25'),
  },
  {
    id: 'buttons.coupon_long',
    severity: 'warning',
    about: `A code of more than ${LONGEST_SENT_COUPON} characters is refused when it is sent.`,
    find: onCoupon((code, path) =>
      excess(code, LONGEST_SENT_COUPON) === 0 || excess(code, LONGEST_COUPON) > 0
        ? fine
        : found(
            path,
            `The code has ${lengthOf(code)} characters; when sending it may have ${LONGEST_SENT_COUPON}.`,
            `Choose codes of at most ${LONGEST_SENT_COUPON} characters.`,
          ),
    ),
    breaks: { ...coupon('SPRING25SPRING25'), at: 'buttons[0].coupon_code' },
    passes: coupon('SPRING25SPRING2'),
  },
  {
    id: 'buttons.coupon_characters',
    severity: 'error',
    about: 'No spaces or line breaks in a code.',
    find: onCoupon((code, path) =>
      /\s/.test(code)
        ? found(
            path,
            `The code ${quote(code)} holds white space.`,
            suggest(code.replaceAll(/\s/g, ''), 'Write letters and digits alone.'),
          )
        : fine,
    ),
    breaks: { ...coupon('SPRING 25'), at: 'buttons[0].coupon_code' },
    passes: coupon('SPRING-25'),
  },
  {
    id: 'buttons.flow_required',
    severity: 'error',
    about: 'A FLOW button names its flow.',
    find: on('FLOW', (button, path) =>
      isBlank(button.flow_id)
        ? found(`${path}.flow_id`, 'The FLOW button names no flow.', "Give the flow's id in flow_id.")
        : fine,
    ),
    breaks: { ...flow({ navigate_screen: 'START' }), at: 'buttons[0].flow_id' },
    passes: flow({ flow_id: '123', navigate_screen: 'START' }),
  },
  {
    id: 'buttons.flow_screen',
    severity: 'error',
    about: 'A flow that navigates names its first screen.',
    find: on('FLOW', (button, path) =>
      button.flow_action !== 'DATA_EXCHANGE' && isBlank(button.navigate_screen)
        ? found(
            `${path}.navigate_screen`,
            'The flow navigates, and its first screen is not named.',
            'Give navigate_screen, or choose flow_action DATA_EXCHANGE.',
          )
        : fine,
    ),
    breaks: { ...flow({ flow_id: '123' }), at: 'buttons[0].navigate_screen' },
    passes: flow({ flow_id: '123', flow_action: 'DATA_EXCHANGE' }),
  },
]

/** What buttons of one type have. */
export const buttonValueRules: readonly Rule[] = [...urlRules, ...otherRules]
