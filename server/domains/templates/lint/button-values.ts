import {
  BUTTON_PHONE,
  chatHosts,
  countCharacters,
  excessLength,
  maxLengths,
} from '../../../../catalog/templates/rules.ts'
import { isBlank } from '../../../../catalog/values.ts'
import { parsePhone } from '../../contacts/phone.ts'
import {
  type DraftButton,
  noFindings,
  type LintFinding,
  finding,
  type LintRule,
  type LintSubject,
} from './rule.ts'
import { quote, suggest } from './text.ts'
import {
  fixedPrefix,
  parseUrlHost,
  isDynamic,
  isHttpsUrl,
  sampleUrl,
  exampleUrl,
  isWholeUrl,
  moveVariableToEnd,
} from './urls.ts'

const checkButtons =
  (type: DraftButton['type'], find: (button: DraftButton, path: string) => LintFinding[]) =>
  ({ buttons }: LintSubject): LintFinding[] =>
    buttons.flatMap(({ path, button }) => (button.type === type ? find(button, path) : noFindings))

const checkUrls = (find: (url: string, path: string, button: DraftButton) => LintFinding[]) =>
  checkButtons('URL', (button, path) => (isBlank(button.url) ? noFindings : find(button.url!, path, button)))

const checkCoupons = (find: (code: string, path: string) => LintFinding[]) =>
  checkButtons('COPY_CODE', (button, path) =>
    isBlank(button.coupon_code) ? noFindings : find(button.coupon_code!, `${path}.coupon_code`),
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
  set: {
    category: 'MARKETING',
    buttons: [{ type: 'COPY_CODE', ...(code === undefined ? {} : { coupon_code: code }) }],
  },
})
const flow = (more: object) => ({ set: { buttons: [{ type: 'FLOW', text: 'Book', ...more }] } })

/** Reports the examples of URLs with a variable that are not as `fits` says; `fixed`: the URL before it. */
const checkUrlExamples = (
  fits: (fixed: string, example: string) => boolean,
  describe: (example: string) => string,
) =>
  checkButtons('URL', (button, path) => {
    const fixed = fixedPrefix(button)
    const example = button.url_example
    return fixed === undefined || isBlank(example) || fits(fixed, example!)
      ? noFindings
      : finding(
          `${path}.url_example`,
          describe(example!),
          suggest(exampleUrl(fixed, example), 'Write the whole URL with its variable filled.'),
        )
  })

const urlRules: readonly LintRule[] = [
  {
    id: 'buttons.url_required',
    severity: 'error',
    source: 'guidelines',
    about: 'A URL button has a URL.',
    find: checkButtons('URL', (button, path) =>
      isBlank(button.url)
        ? finding(`${path}.url`, 'The URL button has no URL.', 'Give the https URL that it opens.')
        : noFindings,
    ),
    breaks: { ...url(''), at: 'buttons[0].url' },
    passes: url('https://shop.example'),
  },
  {
    id: 'buttons.url_length',
    severity: 'error',
    source: 'guidelines',
    about: `At most ${maxLengths.buttonUrl} characters.`,
    find: checkUrls((address, path) => {
      const over = excessLength(address, maxLengths.buttonUrl)
      return over === 0
        ? noFindings
        : finding(
            `${path}.url`,
            `The URL has ${maxLengths.buttonUrl + over} characters; the provider accepts ${maxLengths.buttonUrl}.`,
            `Shorten it by ${over}.`,
          )
    }),
    breaks: { ...url(`https://shop.example/${'x'.repeat(1980)}`), at: 'buttons[0].url' },
    passes: url(`https://shop.example/${'x'.repeat(1979)}`),
  },
  {
    id: 'buttons.url_form',
    severity: 'error',
    source: 'spec',
    about: 'An absolute https URL with a host and without spaces.',
    find: checkUrls((address, path) =>
      isHttpsUrl(sampleUrl(address))
        ? noFindings
        : finding(
            `${path}.url`,
            `${quote(address)} is not an https URL.`,
            suggest(
              toHttpsUrl(address),
              'Write a whole URL such as "https://shop.example/orders"; percent-encode special characters.',
            ),
          ),
    ),
    breaks: { ...url('www.shop.example'), at: 'buttons[0].url' },
    passes: url('https://www.shop.example'),
  },
  {
    id: 'buttons.url_variable',
    severity: 'error',
    source: 'spec',
    about: 'At most one variable, `{{1}}`, at the very end.',
    find: checkUrls((address, path, button) =>
      !isDynamic(address) || fixedPrefix(button) !== undefined
        ? noFindings
        : finding(
            `${path}.url`,
            `The URL ${quote(address)} has a variable that is not one {{1}} at its end.`,
            suggest(moveVariableToEnd(address), 'Keep one {{1}}, at the very end.'),
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
    source: 'guidelines',
    about: 'No link into the messaging app itself (`wa.me`, `api.whatsapp.com`).',
    find: checkUrls((address, path) => {
      const host = parseUrlHost(address)
      return chatHosts.includes(host)
        ? finding(
            `${path}.url`,
            `The URL leads to ${host}, a link into the messaging app itself.`,
            'Link to a page of your own, or use a quick reply.',
          )
        : noFindings
    }),
    breaks: { ...url('https://wa.me/15550100001'), at: 'buttons[0].url' },
    passes: url('https://shop.example/wa.me'),
  },
  {
    id: 'buttons.url_example_missing',
    severity: 'error',
    source: 'error_list',
    about: 'A URL with a variable has an example of the whole URL.',
    find: checkButtons('URL', (button, path) => {
      const fixed = fixedPrefix(button)
      return fixed === undefined || !isBlank(button.url_example)
        ? noFindings
        : finding(
            `${path}.url_example`,
            'The URL has a variable but no example.',
            suggest(exampleUrl(fixed), 'Write the whole URL with its variable filled.'),
          )
    }),
    breaks: { ...url('https://shop.example/{{1}}'), at: 'buttons[0].url_example' },
    passes: url('https://shop.example/{{1}}', { url_example: 'https://shop.example/17' }),
  },
  {
    id: 'buttons.url_example_form',
    severity: 'error',
    source: 'practice',
    about:
      'An example that is a URL is one with https that begins like the URL, and longer than its fixed part.',
    find: checkUrlExamples(
      (fixed, example) =>
        isWholeUrl(example)
          ? isHttpsUrl(example) && example.startsWith(fixed) && example.length > fixed.length
          : !/\s/.test(example),
      (example) => `${quote(example)} is not the URL with its variable filled.`,
    ),
    breaks: {
      ...url('https://shop.example/{{1}}', { url_example: 'https://other.example/17' }),
      at: 'buttons[0].url_example',
    },
    passes: url('https://shop.example/{{1}}', { url_example: 'https://shop.example/17' }),
  },
  {
    id: 'buttons.url_example_whole',
    severity: 'warning',
    source: 'guidelines',
    about:
      'The example is the whole URL. The provider takes the value of the variable alone too, and reviewers see less.',
    find: checkUrlExamples(
      (_, example) => isWholeUrl(example) || /\s/.test(example),
      (example) => `${quote(example)} is only the end of the URL.`,
    ),
    breaks: { ...url('https://shop.example/{{1}}', { url_example: '17' }), at: 'buttons[0].url_example' },
    passes: url('https://shop.example/{{1}}', { url_example: 'https://shop.example/17' }),
  },
]

/** Returns the address with https, where only that is missing; empty otherwise. */
const toHttpsUrl = (address: string): string => {
  const fixed = `https://${address.trim().replace(/^(?:https?:)?\/*/i, '')}`
  return /^[a-z][\w+.-]*:\/\//i.test(address.trim()) && !/^https?:/i.test(address.trim())
    ? ''
    : isHttpsUrl(sampleUrl(fixed)) && parseUrlHost(fixed).includes('.')
      ? fixed
      : ''
}

/** With an offer, `offer.code_length` reports them as errors. */
const findLongCoupons = checkCoupons((code, path) =>
  excessLength(code, maxLengths.sentCode) === 0 || excessLength(code, maxLengths.coupon) > 0
    ? noFindings
    : finding(
        path,
        `The code has ${countCharacters(code)} characters; a send accepts ${maxLengths.sentCode}.`,
        `Choose codes of at most ${maxLengths.sentCode} characters.`,
      ),
)

const otherRules: readonly LintRule[] = [
  {
    id: 'buttons.phone_required',
    severity: 'error',
    source: 'guidelines',
    about: 'A PHONE_NUMBER button has a number.',
    find: checkButtons('PHONE_NUMBER', (button, path) =>
      isBlank(button.phone_number)
        ? finding(
            `${path}.phone_number`,
            'The PHONE_NUMBER button has no number.',
            'Give it with its country code, such as "+15550100001".',
          )
        : noFindings,
    ),
    breaks: { ...phone(undefined), at: 'buttons[0].phone_number' },
    passes: phone('+15550100001'),
  },
  {
    id: 'buttons.phone_form',
    severity: 'error',
    source: 'guidelines',
    about: `An international phone number of at most ${maxLengths.buttonPhone} characters.`,
    find: checkButtons('PHONE_NUMBER', ({ phone_number: given }, path) => {
      if (isBlank(given)) return noFindings
      const parsed = parsePhone(given!)
      if ('error' in parsed)
        return finding(`${path}.phone_number`, `${quote(given!)} ${parsed.error}.`, parsed.fix)
      if (!BUTTON_PHONE.test(given!))
        return finding(
          `${path}.phone_number`,
          `${quote(given!)} is not written as an international number.`,
          `Write "+${parsed.digits}".`,
        )
      return countCharacters(given!) <= maxLengths.buttonPhone
        ? noFindings
        : finding(
            `${path}.phone_number`,
            `The number has ${countCharacters(given!)} characters; the provider accepts ${maxLengths.buttonPhone}.`,
            `Write "+${parsed.digits}".`,
          )
    }),
    breaks: { ...phone('030 1234567'), at: 'buttons[0].phone_number' },
    passes: phone('+49 30 1234567'),
  },
  {
    id: 'buttons.coupon_required',
    severity: 'error',
    source: 'guidelines',
    about: 'A COPY_CODE button has a sample code.',
    find: checkButtons('COPY_CODE', (button, path) =>
      isBlank(button.coupon_code)
        ? finding(
            `${path}.coupon_code`,
            'The COPY_CODE button has no sample code.',
            'Give one in coupon_code, such as "SPRING25".',
          )
        : noFindings,
    ),
    breaks: { ...coupon(undefined), at: 'buttons[0].coupon_code' },
    passes: coupon('SPRING25'),
  },
  {
    id: 'buttons.coupon_length',
    severity: 'error',
    source: 'spec',
    about: `At most ${maxLengths.coupon} characters.`,
    find: checkCoupons((code, path) => {
      const over = excessLength(code, maxLengths.coupon)
      return over === 0
        ? noFindings
        : finding(
            path,
            `The code has ${maxLengths.coupon + over} characters; the provider accepts ${maxLengths.coupon}.`,
            `Shorten it by ${over}.`,
          )
    }),
    breaks: { ...coupon('SPRING25SPRING25SPRING'), at: 'buttons[0].coupon_code' },
    passes: coupon('SPRING25'),
  },
  {
    id: 'buttons.coupon_long',
    severity: 'warning',
    source: 'guidelines',
    about: `Codes of more than ${maxLengths.sentCode} characters are refused when sending.`,
    find: (subject) => (subject.draft.limited_time_offer ? noFindings : findLongCoupons(subject)),
    breaks: { ...coupon('SPRING25SPRING25'), at: 'buttons[0].coupon_code' },
    passes: coupon('SPRING25SPRING2'),
  },
  {
    id: 'buttons.coupon_category',
    severity: 'warning',
    source: 'guidelines',
    about: 'COPY_CODE buttons are for `MARKETING`; the provider may move another template into it.',
    find: (subject) =>
      subject.category !== 'UTILITY'
        ? noFindings
        : checkButtons('COPY_CODE', (_, path) =>
            finding(
              `${path}.type`,
              'A button that copies a coupon code makes a template promotional.',
              'Choose the category MARKETING, or leave out the button.',
            ),
          )(subject),
    breaks: { set: { ...coupon('SPRING25').set, category: 'UTILITY' }, at: 'buttons[0].type' },
    passes: coupon('SPRING25'),
  },
  {
    id: 'buttons.coupon_characters',
    severity: 'error',
    source: 'practice',
    about: 'No spaces or line breaks in a code.',
    find: checkCoupons((code, path) =>
      /\s/.test(code)
        ? finding(
            path,
            `The code ${quote(code)} contains white space.`,
            suggest(code.replaceAll(/\s/g, ''), 'Write only letters and digits.'),
          )
        : noFindings,
    ),
    breaks: { ...coupon('SPRING 25'), at: 'buttons[0].coupon_code' },
    passes: coupon('SPRING-25'),
  },
  {
    id: 'buttons.flow_required',
    severity: 'error',
    source: 'guidelines',
    about: 'A FLOW button names its flow.',
    find: checkButtons('FLOW', (button, path) =>
      isBlank(button.flow_id)
        ? finding(`${path}.flow_id`, 'The FLOW button names no flow.', "Give the flow's id in flow_id.")
        : noFindings,
    ),
    breaks: { ...flow({ navigate_screen: 'START' }), at: 'buttons[0].flow_id' },
    passes: flow({ flow_id: '123', navigate_screen: 'START' }),
  },
  {
    id: 'buttons.flow_screen',
    severity: 'error',
    source: 'guidelines',
    about: 'A flow that navigates names its first screen.',
    find: checkButtons('FLOW', (button, path) =>
      button.flow_action !== 'DATA_EXCHANGE' && isBlank(button.navigate_screen)
        ? finding(
            `${path}.navigate_screen`,
            'The flow navigates, but its first screen is not named.',
            'Give navigate_screen, or choose flow_action DATA_EXCHANGE.',
          )
        : noFindings,
    ),
    breaks: { ...flow({ flow_id: '123' }), at: 'buttons[0].navigate_screen' },
    passes: flow({ flow_id: '123', flow_action: 'DATA_EXCHANGE' }),
  },
]

/** Rules for the fields of one type of button. */
export const buttonValueRules: readonly LintRule[] = [...urlRules, ...otherRules]
